import type { RunnableJob } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import { isLimitError, isSetupError } from "@conversation-export/warehouse";

/** The first failure may come from other load. */
const HEAVY_ATTEMPTS = 2;

const reported = <C extends { readonly attempt: number }, A extends readonly unknown[], R>(
  work: (context: C, ...args: A) => Promise<R>,
) => {
  return async (context: C, ...args: A): Promise<R> => {
    try {
      return await work(context, ...args);
    } catch (error) {
      if (isLimitError(error) && context.attempt >= HEAVY_ATTEMPTS) {
        throw new ServiceError(
          "warehouse_limit",
          `ClickHouse says ${error.causeName}: the work is beyond a limit of the user for jobs or of the server`,
          { cause: error },
        );
      }
      if (!isSetupError(error)) throw error;
      throw new ServiceError(
        "warehouse_setup",
        `ClickHouse says ${error.causeName}: a grant or a table is missing, run export-ops doctor`,
        { cause: error },
      );
    }
  };
};

/** At once for a missing grant or table. */
export const withSetupErrors = (job: RunnableJob): RunnableJob => {
  const { work } = job;
  if (work.kind === "whole") return { ...job, work: { ...work, run: reported(work.run) } };
  const { split, runPart, finish } = work;
  return {
    ...job,
    work: { ...work, split: reported(split), runPart: reported(runPart), finish: reported(finish) },
  };
};
