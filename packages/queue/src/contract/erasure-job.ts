import { byList } from "@conversation-export/domain";
import { z } from "zod";
import type { JobType } from "./job.ts";

const erasureData = z.strictObject({
  /** Both null: a scheduled run; every run works for all unfinished requests. */
  clientId: z.string().min(1).nullable(),
  requestId: z.string().min(1).nullable(),
  /** Erases again what was erased since then; a dry run only counts. */
  again: z.object({ since: z.iso.datetime(), dryRun: z.boolean() }).optional(),
});
/** The subject is in the request's row, never here. */
export type ErasureData = z.infer<typeof erasureData>;

const erasureResult = z.object({
  hidden: z.int().default(0),
  /** All that were hidden when deletion began. */
  requests: z.int(),
  /** Waiting for an operator. */
  held: z.int().default(0),
  /** Records deleted, or only hidden while another run deletes. */
  found: z.object(byList(() => z.int())),
  deleted: z.record(z.string(), z.int()),
  rounds: z.int(),
  /** `ids`: erased before; `persons`: erased persons' identifiers in stored rows. */
  again: z.object({ dryRun: z.boolean(), ids: z.int(), persons: z.int() }).optional(),
});
export type ErasureResult = z.infer<typeof erasureResult>;

/** One job for each request; job ids hold no colon and are no number. */
export const erasureJobId = (requestId: string): string => `request-${encodeURIComponent(requestId)}`;

export const erasureJob: JobType<ErasureData, ErasureResult> = {
  name: "erasure",
  data: erasureData,
  result: erasureResult,
};
