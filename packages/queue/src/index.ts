export type { Allowance } from "./allowance.ts";
export {
  type BackfillCounts,
  type BackfillData,
  type BackfillResult,
  type BackfillSource,
  type BackfillWindow,
  backfillCountsSchema,
  backfillJob,
  type TableCounts,
} from "./backfill-job.ts";
export {
  createErasureQueue,
  type ErasureJob,
  type ErasureQueue,
  type ErasureStatus,
} from "./erasure-queue.ts";
export { createExclusive, type Exclusive } from "./exclusive.ts";
export { type Claim, createIdempotencyStore, type IdempotencyStore } from "./idempotency-store.ts";
export { createJobBoard, type JobBoard } from "./job-board.ts";
export { createJobClient, type JobClient, type JobCounts, type ScheduleView } from "./job-client.ts";
export { createSchedules, type Schedule, type Schedules, schedule } from "./job-schedules.ts";
export { hasEnded, JOB_STATES, type JobState, type JobView } from "./job-view.ts";
export { createJobWorkers, type JobWorkers } from "./job-workers.ts";
export { createMemoryLimiter, type MemoryLimiter } from "./memory-limiter.ts";
export { createRanSince, type RanSince } from "./ran-since.ts";
export { createRateLimiter, type RateLimiter } from "./rate-limiter.ts";
export { createRedis, type Redis } from "./redis.ts";
export { registerQueueMetrics } from "./queue-metrics.ts";
export { type RunnableJob, type RunOptions, runJob, runSplitJob, type SplitRunOptions } from "./run-job.ts";
export type { RedisServerFacts } from "./server-facts.ts";
export {
  JOB_NAMES,
  type JobContext,
  type JobHandler,
  type JobName,
  type JobProgress,
  type JobType,
  type SplitJobHandler,
} from "./job.ts";
export { type ReconcileData, reconcileJob, type ReconcileResult } from "./reconcile-job.ts";
export { DEFAULT_MAX_REPLAYS, type ReplayData, replayJob, type ReplayResult } from "./replay-job.ts";
export { type RetentionData, retentionJob, type RetentionResult } from "./retention-job.ts";
export {
  type CompactData,
  type CompactedPartition,
  compactJob,
  type CompactResult,
  PARTITION_OUTCOMES,
  type PartitionOutcome,
} from "./compact-job.ts";
export { type WindowsData, windowsJob, type WindowsResult } from "./windows-job.ts";
export { type ErasureData, erasureJob, type ErasureResult } from "./erasure-job.ts";
export {
  createWriterLeases,
  type LeaseState,
  WRITER_LEASE_MS,
  type WriterLease,
  type WriterLeases,
  type WriterList,
} from "./writer-leases.ts";
