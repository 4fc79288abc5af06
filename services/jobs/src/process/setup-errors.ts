import type { RunnableJob } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import { isSetupError } from "@conversation-export/warehouse";

const told = <A extends readonly unknown[], R>(work: (...args: A) => Promise<R>) => {
  return async (...args: A): Promise<R> => {
    try {
      return await work(...args);
    } catch (error) {
      if (!isSetupError(error)) throw error;
      throw new ServiceError(
        "warehouse_setup",
        `ClickHouse says ${error.causeName}: a grant or a table is missing, run export-ops doctor`,
        { cause: error },
      );
    }
  };
};

/** Makes a job fail at once, instead of being retried, when a grant or a table is missing. */
export const withSetupTold = (job: RunnableJob): RunnableJob => {
  const { work } = job;
  if (work.kind === "whole") return { ...job, work: { ...work, run: told(work.run) } };
  const { split, runPart, finish } = work;
  return {
    ...job,
    work: { ...work, split: told(split), runPart: told(runPart), finish: told(finish) },
  };
};
