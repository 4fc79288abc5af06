import { ServiceError } from "@conversation-export/runtime";
import type { BackfillRuns } from "@conversation-export/warehouse";

export const rowsGone = (): ServiceError =>
  new ServiceError("backfill_rows_gone", "what the job has read is gone or a day old: start a new one");

/** What was read of the run before was complete. @throws ServiceError `backfill_rows_gone` */
export const assertKept = async (
  runs: Pick<BackfillRuns, "exists">,
  run: string,
  signal: AbortSignal,
): Promise<void> => {
  if (!(await runs.exists(run, signal))) throw rowsGone();
};
