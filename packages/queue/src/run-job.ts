import { ServiceError } from "@conversation-export/runtime";
import type { z } from "zod";
import type { JobContext, JobHandler, JobName, SplitJobHandler } from "./job.ts";

export type RunOptions = {
  /** At a time in one process, 1 by default; of a split job its parts, while they run, do not count. */
  readonly concurrency?: number;
  /** At a time in all processes together; of a split job its parts. Absent: as many as the processes run. */
  readonly globalConcurrency?: number;
};
export type SplitRunOptions = RunOptions & {
  /** Parts at a time in one process, 1 by default. */
  readonly partConcurrency?: number;
};

type Context<Data = unknown> = JobContext<Data, unknown>;

/** The work of a job whose types were checked when it was made. */
export type JobWork =
  | { readonly kind: "whole"; run(context: Context): Promise<unknown> }
  | {
      readonly kind: "split";
      split(context: Context): Promise<readonly unknown[]>;
      runPart(context: Context): Promise<unknown>;
      finish(context: Context, results: readonly unknown[]): Promise<unknown>;
    };

/** A job that a worker can run. */
export type RunnableJob = {
  readonly name: JobName;
  readonly options: SplitRunOptions;
  readonly work: JobWork;
};

/** A job with what it takes and gives checked at its edges. */
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

/** A job in parts, with what it and they take and give checked at the edges. */
export const runSplitJob = <Data, Part, PartResult, Result>(
  handler: SplitJobHandler<Data, Part, PartResult, Result>,
  options: SplitRunOptions = {},
): RunnableJob => {
  const { type, part, partResult } = handler;
  const typed = (context: Context): JobContext<Data> =>
    ({ ...context, data: check("bad_data", type.data, context.data) }) as JobContext<Data>;
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
        return check("bad_result", type.result, await handler.finish(typed(context), checked));
      },
    },
  };
};

/** @throws ServiceError that names the wrong fields, never their values */
export const check = <T>(code: string, schema: z.ZodType<T>, value: unknown): T => {
  const parsed = schema.safeParse(value, { reportInput: false });
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => issue.path.join(".") || "(all)");
  throw new ServiceError(code, `wrong: ${[...new Set(fields)].slice(0, 10).join(", ")}`);
};
