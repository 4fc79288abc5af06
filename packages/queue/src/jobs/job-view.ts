import type { Job } from "bullmq";
import { codeOfFailure } from "../worker/job-failure.ts";
import { sumProgress } from "../worker/job-progress.ts";
import { isJobName } from "../contract/job-queues.ts";
import type { JobName, JobProgress } from "../contract/job.ts";
import { readStoredData, type StoredData } from "../contract/stored-data.ts";

/** `parts`: the parts of the job run. `completed`, `failed` and `cancelled` are final. */
export const JOB_STATES = [
  "waiting",
  "delayed",
  "active",
  "parts",
  "completed",
  "failed",
  "cancelled",
] as const;
export type JobState = (typeof JOB_STATES)[number];

/** A job as shown to operators. */
export type JobView = {
  readonly name: JobName;
  readonly id: string;
  readonly state: JobState;
  /** Asked to stop and not ended yet. */
  readonly cancelling: boolean;
  /** The data that the job was added with. */
  readonly data: unknown;
  /** For a job in parts the sum over its parts. */
  readonly progress: JobProgress | null;
  /** null: not a job in parts, or not split yet. */
  readonly parts: { readonly total: number; readonly done: number; readonly failed: number } | null;
  /** Attempts that have begun. */
  readonly attempt: number;
  /** `code: message` of the failure, or of the last attempt. */
  readonly reason: string | null;
  /** null until it has completed. */
  readonly result: unknown;
  readonly addedAt: Date;
  /** When a worker last took it; a job in parts is also taken to be split and to be finished. */
  readonly lastStartedAt: Date | null;
  readonly endedAt: Date | null;
  /** null unless the job is delayed. */
  readonly nextAttemptAt: Date | null;
};

/** Facts about a job that are stored beside it. */
export type JobSurroundings = {
  readonly cancelAsked: boolean;
  readonly dependencies: {
    readonly processed: number;
    readonly unprocessed: number;
    readonly ignored: number;
  };
  readonly partProgress: readonly JobProgress[];
  readonly nextAttemptAt: Date | null;
};

const ENDS: readonly JobState[] = ["completed", "failed", "cancelled"];
export const hasEnded = ({ state }: Pick<JobView, "state">): boolean => ENDS.includes(state);

/** Translates a state of BullMQ. */
export const stateOf = (state: string, reason: string | null): JobState => {
  switch (state) {
    case "active":
    case "completed":
    case "delayed":
      return state;
    case "waiting-children":
      return "parts";
    case "failed":
      return codeOfFailure(reason ?? "") === "cancelled" ? "cancelled" : "failed";
    default:
      return "waiting";
  }
};

export const viewJob = (
  job: Job<StoredData, unknown>,
  queueState: string,
  about: JobSurroundings,
): JobView => {
  if (!isJobName(job.queueName)) throw new TypeError(`not a queue of jobs: ${job.queueName}`);
  const reason = job.failedReason ?? null;
  const state = stateOf(queueState, reason === "" ? null : reason);
  const { input, plan } = readStoredData(job.data);
  const { processed, unprocessed, ignored } = about.dependencies;
  const total = plan?.length ?? 0;
  return {
    name: job.queueName,
    id: job.id ?? "",
    state,
    cancelling: about.cancelAsked && !hasEnded({ state }),
    data: input,
    progress:
      (plan === undefined ? null : sumProgress(about.partProgress, total)) ?? readProgress(job.progress),
    parts:
      plan === undefined
        ? null
        : { total, done: processed, failed: Math.max(Math.min(ignored, total - processed - unprocessed), 0) },
    attempt: job.attemptsMade + (state === "active" || state === "parts" ? 1 : 0),
    reason: reason === "" || state === "completed" ? null : reason,
    result: state === "completed" ? (job.returnvalue ?? null) : null,
    addedAt: new Date(job.timestamp),
    lastStartedAt: dateOf(job.processedOn),
    endedAt: hasEnded({ state }) ? dateOf(job.finishedOn) : null,
    nextAttemptAt: state === "delayed" ? about.nextAttemptAt : null,
  };
};

const dateOf = (ms: number | null | undefined): Date | null => (ms == null ? null : new Date(ms));

/** BullMQ has 0 for a job without progress. */
const readProgress = (progress: unknown): JobProgress | null =>
  typeof progress === "object" && progress !== null && "done" in progress && "unit" in progress
    ? (progress as JobProgress)
    : null;
