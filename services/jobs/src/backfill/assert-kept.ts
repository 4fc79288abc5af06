import { ServiceError } from "@conversation-export/runtime";
import type { BackfillRuns } from "@conversation-export/warehouse";

export const rowsGone = (): ServiceError =>
  new ServiceError("backfill_rows_gone", "what the job has read is gone or a day old: start a new one");

/**
 * Proves that nothing of a run was removed since it began, so that what was read of it before was all of it.
 * @throws ServiceError `backfill_rows_gone`
 */
export const assertKept = async (
  runs: Pick<BackfillRuns, "exists">,
  run: string,
  signal: AbortSignal,
): Promise<void> => {
  if (!(await runs.exists(run, signal))) throw rowsGone();
};
