import type { Job } from "bullmq";
import { codeOfFailure } from "../worker/job-failure.ts";
import { sumProgress } from "../worker/job-progress.ts";
import type { JobName, JobProgress } from "../contract/job.ts";
import { readStoredData, type StoredData } from "../contract/stored-data.ts";

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

export type JobView = {
  readonly name: JobName;
  readonly id: string;
  readonly state: JobState;
  readonly cancelling: boolean;
  readonly data: unknown;
  readonly progress: JobProgress | null;
  /** null: not in parts, or not split yet. */
  readonly parts: { readonly total: number; readonly done: number; readonly failed: number } | null;
  readonly attempt: number;
  /** `code: message`, or of the last attempt. */
  readonly reason: string | null;
  readonly result: unknown;
  readonly addedAt: Date;
  /** Also to split a job or to finish it. */
  readonly lastStartedAt: Date | null;
  readonly endedAt: Date | null;
  readonly nextAttemptAt: Date | null;
};

export type JobSurroundings = {
  readonly name: JobName;
  readonly cancelAsked: boolean;
  readonly dependencies: {
    readonly processed?: number;
    readonly unprocessed?: number;
    readonly ignored?: number;
  };
  readonly partProgress: readonly JobProgress[];
  readonly nextAttemptAt: Date | null;
};

const ENDS: readonly JobState[] = ["completed", "failed", "cancelled"];
export const hasEnded = ({ state }: Pick<JobView, "state">): boolean => ENDS.includes(state);

const stateOf = (state: string, reason: string | null): JobState => {
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
  const reason = job.failedReason ?? null;
  const state = stateOf(queueState, reason === "" ? null : reason);
  const { input, plan } = readStoredData(job.data);
  const { processed = 0, unprocessed = 0, ignored = 0 } = about.dependencies;
  const total = plan?.length ?? 0;
  return {
    name: about.name,
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
