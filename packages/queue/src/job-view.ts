import type { Job } from "bullmq";
import { codeOfFailure } from "./job-failure.ts";
import { sumProgress } from "./job-progress.ts";
import { isJobName } from "./job-queues.ts";
import type { JobName, JobProgress } from "./job.ts";
import { readStoredData, type StoredData } from "./stored-data.ts";

/** `parts`: its parts run. `cancelled` is an end, as `completed` and `failed` are. */
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

/** A job as people see it. */
export type JobView = {
  readonly name: JobName;
  readonly id: string;
  readonly state: JobState;
  /** Asked to stop and not ended yet. */
  readonly cancelling: boolean;
  /** As it was given. */
  readonly data: unknown;
  /** Of a job in parts the sum over its parts. */
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
  /** When a worker last took it, one in parts also to split it and to put the results together. */
  readonly lastStartedAt: Date | null;
  readonly endedAt: Date | null;
  /** Of a delayed one. */
  readonly nextAttemptAt: Date | null;
};

/** What the fields of a job do not tell. */
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

/** `state` in the words of the queue. */
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

/** A job that has said nothing has the number 0. */
const readProgress = (progress: unknown): JobProgress | null =>
  typeof progress === "object" && progress !== null && "done" in progress && "unit" in progress
    ? (progress as JobProgress)
    : null;
