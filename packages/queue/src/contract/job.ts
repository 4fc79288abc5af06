import type { Logger } from "@conversation-export/runtime";
import type { z } from "zod";

/** The queues, one for each kind of job. */
export const JOB_NAMES = [
  "backfill",
  "compact",
  "erasure",
  "replay",
  "retention",
  "reconcile",
  "windows",
] as const;
export type JobName = (typeof JOB_NAMES)[number];

/** Those that run in parts, which have a queue of their own. */
export const SPLIT_JOB_NAMES: readonly JobName[] = ["backfill"];

/** The contract of a queue: its name, and the schemas of data and result. */
export type JobType<Data, Result> = {
  readonly name: JobName;
  readonly data: z.ZodType<Data>;
  readonly result: z.ZodType<Result>;
};

/** `total` is null while it is not known. */
export type JobProgress = {
  readonly done: number;
  readonly total: number | null;
  readonly unit: string;
  readonly note?: string;
};

export type JobContext<Data, State = never> = {
  readonly id: string;
  readonly data: Data;
  /** 1 for the first. */
  readonly attempt: number;
  /**
   * Aborts when the job is cancelled, when its lock is lost and when the process stops: stop at the next safe
   * point.
   */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** The state that was last saved, also by an attempt that died. */
  readonly state: State | undefined;
  save(state: State): Promise<void>;
  progress(progress: JobProgress): Promise<void>;
};

/** Runs a job. Running it twice must be harmless. */
export type JobHandler<Data, Result, State = never> = {
  readonly type: JobType<Data, Result>;
  run(context: JobContext<Data, State>): Promise<Result>;
};

/** Runs a job in parts. Each part is run, retried and kept as a job of its own. */
export type SplitJobHandler<Data, Part, PartResult, Result, State = never> = {
  readonly type: JobType<Data, Result>;
  readonly part: z.ZodType<Part>;
  readonly partResult: z.ZodType<PartResult>;
  split(context: JobContext<Data>): Promise<readonly Part[]>;
  runPart(context: JobContext<{ readonly job: Data; readonly part: Part }>): Promise<PartResult>;
  finish(context: JobContext<Data, State>, results: readonly PartResult[]): Promise<Result>;
};
