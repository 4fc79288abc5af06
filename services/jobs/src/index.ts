// Parts that tests run against real servers without the process around them.
export { addUp } from "./backfill/backfill-counts.ts";
export { createLandingBackfill, type LandingBackfill } from "./backfill/landing-backfill.ts";
export { createCorrectRecords } from "./backfill/correct-records.ts";
export { createApproval } from "./erasure/approval.ts";
export { createErasure, type ErasureDeps } from "./erasure/erasure.ts";
export { createPendingWrites } from "./process/pending-writes.ts";
export { createWritersConfirmed, type WritersConfirmed } from "./erasure/writers-confirmed.ts";
