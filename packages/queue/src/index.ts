export type { Allowance } from "./limits/allowance.ts";
export {
  type BackfillCounts,
  type BackfillData,
  type BackfillResult,
  type BackfillSource,
  type BackfillWindow,
  backfillCountsSchema,
  backfillJob,
  type TableCounts,
} from "./contract/backfill-job.ts";
export { createExclusive, type Exclusive } from "./leases/exclusive.ts";
export { type Claim, createIdempotencyStore, type IdempotencyStore } from "./limits/idempotency-store.ts";
export { createKeyUses, type KeyUses } from "./limits/key-uses.ts";
export { createJobBoard } from "./jobs/job-board.ts";
export { createJobClient, type JobClient } from "./jobs/job-client.ts";
export type { HeldSchedule } from "./jobs/held-schedules.ts";
export type { QueueBacklog } from "./jobs/queue-backlog.ts";
export { createSchedules, type Schedule, schedule } from "./jobs/job-schedules.ts";
export { createJobStates } from "./jobs/job-states.ts";
export { hasEnded, JOB_STATES, type JobState, type JobView } from "./jobs/job-view.ts";
export { createJobWorkers, type JobWorkers } from "./worker/job-workers.ts";
export { createMemoryLimiter } from "./limits/memory-limiter.ts";
export { createRateLimiter, type RateLimiter } from "./limits/rate-limiter.ts";
export { createSharedSlots, type SharedSlots } from "./limits/shared-slots.ts";
export { createRedis, type Redis } from "./redis/redis.ts";
export { registerQueueMetrics } from "./jobs/queue-metrics.ts";
export {
  type RunnableJob,
  runJob,
  runSplitJob,
} from "./worker/run-job.ts";
export {
  JOB_NAMES,
  type JobContext,
  type JobHandler,
  type JobName,
  type JobType,
  type SplitJobHandler,
} from "./contract/job.ts";
export { type ReconcileData, reconcileJob, type ReconcileResult } from "./contract/reconcile-job.ts";
export { DEFAULT_MAX_REPLAYS, type ReplayData, replayJob, type ReplayResult } from "./contract/replay-job.ts";
export { type RetentionData, retentionJob, type RetentionResult } from "./contract/retention-job.ts";
export { type CompactData, compactJob, type CompactResult } from "./contract/compact-job.ts";
export { type WindowsData, windowsJob, type WindowsResult } from "./contract/windows-job.ts";
export { type ErasureData, erasureJob, erasureJobId, type ErasureResult } from "./contract/erasure-job.ts";
export { REDIS_DEFAULT_RULES, REDIS_USERS, redisRules, type RedisUser } from "./redis/acl.ts";
