import type { JobName } from "@conversation-export/queue";

/** A test compares them with the chart's files/alerts. */
export const THRESHOLDS = {
  /** WatermarkOld */
  watermarkSeconds: 300,
  /** IngestLag, which also compares with the pace */
  lagRecords: 10_000,
  /** UploadWindowsOverdue, in lines */
  openWindows: 20,
  closedWindows: 30,
  /** ErasureSlow */
  erasureSeconds: 86_400,
  /** JobQueueOld and ScheduleStalled; `late` for queues that may wait for a long job */
  soonSeconds: 1_800,
  lateSeconds: 21_600,
  /** DeadLetters and JobFailed: within it */
  recentMs: 3_600_000,
} as const;

const SOON: readonly JobName[] = ["windows", "erasure"];

/** Seconds. */
export const patienceOf = (queue: JobName): number =>
  SOON.includes(queue) ? THRESHOLDS.soonSeconds : THRESHOLDS.lateSeconds;
