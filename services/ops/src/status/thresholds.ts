import type { JobName } from "@conversation-export/queue";

/**
 * From where on `status` marks what it shows: the numbers of the alerts, which a test compares with
 * deploy/charts/conversation-export/files/alerts.
 */
export const THRESHOLDS = {
  /** WatermarkOld */
  watermarkSeconds: 300,
  /** IngestLag, which also compares it with the pace */
  lagRecords: 10_000,
  /** IngestLagUnknown: with a younger watermark nothing is behind */
  unknownLagWatermarkSeconds: 60,
  /** UploadWindowsOverdue, in lines: a window of a table */
  openWindows: 20,
  closedWindows: 30,
  /** ErasureSlow */
  erasureSeconds: 86_400,
  /** JobQueueOld and ScheduleStalled: for jobs that run often, and for those that may wait for a long one */
  soonSeconds: 1_800,
  lateSeconds: 21_600,
  /** DeadLetters and JobFailed: what came within it */
  recentMs: 3_600_000,
} as const;

/** Queues whose jobs run within minutes and often. */
const SOON: readonly JobName[] = ["windows", "erasure"];

/** After how long a job or a schedule of the queue has waited too long, seconds. */
export const patienceOf = (queue: JobName): number =>
  SOON.includes(queue) ? THRESHOLDS.soonSeconds : THRESHOLDS.lateSeconds;
