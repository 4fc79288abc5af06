import { createExclusive, runJob } from "@conversation-export/queue";
import { createSubjectHash } from "@conversation-export/suppression";
import {
  createAuditStore,
  createErasureStore,
  createRequestCompletion,
  createSuppressionStore,
} from "@conversation-export/warehouse";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { createApproval } from "./approval.ts";
import { createErasure } from "./erasure.ts";
import { createErasureDeadline } from "./erasure-deadline.ts";
import { withFoundNoted } from "./found-noted.ts";
import { createLatestJudgement } from "./latest-judgement.ts";

const LOOK_FOR_OVERDUE_EVERY_MS = 15_000;
const WAIT_FOR_BATCHES_MS = 30_000;

export const createErasureJob = (shared: Shared): AssembledJob => {
  const { config, session, stable, runUpload, redis, coordination, metrics, log } = shared;
  const now = Date.now;
  const requests = createRequestCompletion({ session, now });
  const store = withFoundNoted(createErasureStore({ session, runUpload }), createAuditStore({ session }));
  const erasure = createErasure({
    requests,
    store,
    suppressions: createSuppressionStore({ session }),
    approval: createApproval({ requests, store, rule: config.erasureApproval, log }),
    judgement: createLatestJudgement({ coordination, stable, patienceMs: WAIT_FOR_BATCHES_MS, now, log }),
    hash: createSubjectHash(config.suppressionSecret),
    // A dead process's lock must end before another worker takes its job.
    exclusive: createExclusive({ redis, lockMs: config.lockMs / 2 }),
  });
  const deadline = createErasureDeadline({
    requests,
    deadlineMs: config.erasureDeadlineMs,
    everyMs: LOOK_FOR_OVERDUE_EVERY_MS,
    metrics,
    log,
    now,
  });
  return {
    // So that new requests are hidden while another run deletes.
    job: runJob(erasure, { globalConcurrency: 2, concurrency: 2 }),
    parts: [{ name: "erasure deadline", ...deadline }],
  };
};
