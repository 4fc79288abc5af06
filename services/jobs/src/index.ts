// Tests run these against real servers.
export { addUp } from "./backfill/backfill-counts.ts";
export { createLandingBackfill, type LandingBackfill } from "./backfill/landing-backfill.ts";
export { createCorrectRecords } from "./backfill/correct-records.ts";
export { createApproval } from "./erasure/approval.ts";
export { createErasure, type ErasureDeps } from "./erasure/erasure.ts";
export { createLatestJudgement, type LatestJudgement } from "./erasure/latest-judgement.ts";
export { createStableMonitor } from "./stable/stable-monitor.ts";
