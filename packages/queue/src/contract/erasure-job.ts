import { byList } from "@conversation-export/domain";
import { z } from "zod";
import type { JobType } from "./job.ts";

const erasureData = z.strictObject({
  /** Both null: a run of the schedule. Every run works for all unfinished requests. */
  clientId: z.string().min(1).nullable(),
  requestId: z.string().min(1).nullable(),
  /** Looks for data that was erased since this instant and erases it again. A dry run only counts. */
  again: z.object({ since: z.iso.datetime(), dryRun: z.boolean() }).optional(),
});
/** The subject is in the row of the request, never here. */
export type ErasureData = z.infer<typeof erasureData>;

const erasureResult = z.object({
  /** Requests of which this run has hidden everything from readers. */
  hidden: z.int().default(0),
  /** Requests finished by this run: all that were hidden when it began to delete. */
  requests: z.int(),
  /** Requests of which this run found that they have to wait for an operator. */
  held: z.int().default(0),
  /** Records found by the run, by list: those deleted, or only hidden while another run deletes. */
  found: z.object(byList(() => z.int())),
  /** Rows that were deleted, or would be in a dry run, by table. */
  deleted: z.record(z.string(), z.int()),
  /** Rounds of deletion until nothing was left. */
  rounds: z.int(),
  /**
   * Only of a run that erases again: `ids` of conversations and messages that were erased before, and
   * `persons`, the identifiers in stored rows that are those of erased persons.
   */
  again: z.object({ dryRun: z.boolean(), ids: z.int(), persons: z.int() }).optional(),
});
export type ErasureResult = z.infer<typeof erasureResult>;

/**
 * Id of the job of a request, so that a request has one job at most. Job ids must hold no colon and be no
 * number.
 */
export const erasureJobId = (requestId: string): string => `request-${encodeURIComponent(requestId)}`;

/** Hides the persons of all new requests from readers, and erases those of all hidden ones as one batch. */
export const erasureJob: JobType<ErasureData, ErasureResult> = {
  name: "erasure",
  data: erasureData,
  result: erasureResult,
};
