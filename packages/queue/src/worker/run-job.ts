import { check } from "../contract/check.ts";
import {
  type JobContext,
  type JobHandler,
  type JobName,
  SPLIT_JOB_NAMES,
  type SplitJobHandler,
} from "../contract/job.ts";

export type RunOptions = {
  /** In all processes; of a split job its parts; absent: no common limit. */
  readonly globalConcurrency?: number;
  /** Codes of what a whole run found; any other final failure holds the schedule. */
  readonly findings?: readonly string[];
  readonly concurrency?: number;
};

type Context<Data = unknown> = JobContext<Data, unknown>;

export type JobWork =
  | { readonly kind: "whole"; run(context: Context): Promise<unknown> }
  | {
      readonly kind: "split";
      split(context: Context): Promise<readonly unknown[]>;
      runPart(context: Context): Promise<unknown>;
      finish(context: Context, results: readonly unknown[]): Promise<unknown>;
    };

export type RunnableJob = {
  readonly name: JobName;
  readonly options: RunOptions;
  readonly work: JobWork;
};

export const runJob = <Data, Result, State = never>(
  handler: JobHandler<Data, Result, State>,
  options: RunOptions = {},
): RunnableJob => {
  const { type } = handler;
  return {
    name: type.name,
    options,
    work: {
      kind: "whole",
      run: async (context) => {
        const typed = { ...context, data: check("bad_data", type.data, context.data) };
        return check("bad_result", type.result, await handler.run(typed as JobContext<Data, State>));
      },
    },
  };
};

export const runSplitJob = <Data, Part, PartResult, Result, State = never>(
  handler: SplitJobHandler<Data, Part, PartResult, Result, State>,
  options: RunOptions = {},
): RunnableJob => {
  const { type, part, partResult } = handler;
  if (!SPLIT_JOB_NAMES.includes(type.name)) throw new TypeError(`${type.name} is no job in parts`);
  const typed = <Of = never>(context: Context): JobContext<Data, Of> =>
    ({ ...context, data: check("bad_data", type.data, context.data) }) as JobContext<Data, Of>;
  return {
    name: type.name,
    options,
    work: {
      kind: "split",
      split: async (context) => {
        const parts = await handler.split(typed(context));
        return parts.map((one) => check("bad_part", part, one));
      },
      runPart: async (context) => {
        const given = context.data as { readonly job: unknown; readonly part: unknown };
        const data = {
          job: check("bad_data", type.data, given.job),
          part: check("bad_part", part, given.part),
        };
        const result = await handler.runPart({ ...context, data } as JobContext<typeof data>);
        return check("bad_part_result", partResult, result);
      },
      finish: async (context, results) => {
        const checked = results.map((one) => check("bad_part_result", partResult, one));
        return check("bad_result", type.result, await handler.finish(typed<State>(context), checked));
      },
    },
  };
};
