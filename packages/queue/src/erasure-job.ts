import { z } from "zod";
import type { JobType } from "./job.ts";

const erasureData = z.strictObject({
  /** Both null: whatever is unfinished, as the schedule asks for. */
  clientId: z.string().min(1).nullable(),
  requestId: z.string().min(1).nullable(),
  /** What was erased since this instant is looked for and erased once more. A dry run only counts. */
  again: z.object({ since: z.iso.datetime(), dryRun: z.boolean() }).optional(),
});
/** What is to be erased stands in the row of the request, never here. */
export type ErasureData = z.infer<typeof erasureData>;

const erasureResult = z.object({
  /** Requests that this run has finished: all that were unfinished when it began. */
  requests: z.int(),
  /** Keys of records that the run has found, by kind. */
  found: z.object({ conversations: z.int(), messages: z.int(), endUsers: z.int() }),
  /** Rows that were deleted, by table; of a dry run those that would be. */
  deleted: z.record(z.string(), z.int()),
  /** How often it deleted before nothing was left. */
  rounds: z.int(),
  /** Of a run that erases again: ids of conversations and messages that were erased, and how many of the identifiers
   * that stand in stored rows are those of erased persons. */
  again: z.object({ dryRun: z.boolean(), ids: z.int(), persons: z.int() }).optional(),
});
export type ErasureResult = z.infer<typeof erasureResult>;

/** Erases the data of persons: of all requests that are not finished, as one batch. */
export const erasureJob: JobType<ErasureData, ErasureResult> = {
  name: "erasure",
  data: erasureData,
  result: erasureResult,
};
