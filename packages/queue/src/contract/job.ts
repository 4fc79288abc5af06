import type { Logger } from "@conversation-export/runtime";
import type { z } from "zod";

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

export const SPLIT_JOB_NAMES: readonly JobName[] = ["backfill"];

export type JobType<Data, Result> = {
  readonly name: JobName;
  readonly data: z.ZodType<Data>;
  readonly result: z.ZodType<Result>;
};

export type JobProgress = {
  readonly done: number;
  readonly total: number | null;
  readonly unit: string;
  readonly note?: string;
};

export type JobContext<Data, State = never> = {
  readonly id: string;
  readonly data: Data;
  /** From 1. */
  readonly attempt: number;
  /** Aborts on cancellation, a lost lock and shutdown: stop at the next safe point. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Saved last, perhaps by an attempt that died. */
  readonly state: State | undefined;
  save(state: State): Promise<void>;
  progress(progress: JobProgress): Promise<void>;
};

/** Running a job twice must be harmless (docs/decisions/0013). */
export type JobHandler<Data, Result, State = never> = {
  readonly type: JobType<Data, Result>;
  run(context: JobContext<Data, State>): Promise<Result>;
};

export type SplitJobHandler<Data, Part, PartResult, Result, State = never> = {
  readonly type: JobType<Data, Result>;
  readonly part: z.ZodType<Part>;
  readonly partResult: z.ZodType<PartResult>;
  split(context: JobContext<Data>): Promise<readonly Part[]>;
  runPart(context: JobContext<{ readonly job: Data; readonly part: Part }>): Promise<PartResult>;
  finish(context: JobContext<Data, State>, results: readonly PartResult[]): Promise<Result>;
};
