import { z } from "zod";
import type { JobType } from "./job.ts";

const instant = z.iso.datetime();

const compactData = z.object({
  /** Windows that lie in this range of upload times, `to` exclusive; null: all that are due. */
  range: z.object({ from: instant, to: instant }).nullable(),
  /** Also windows that have been compacted. */
  force: z.boolean(),
  /** Only reports what would be done. */
  dryRun: z.boolean(),
});
export type CompactData = z.infer<typeof compactData>;

const compactResult = z.object({
  dryRun: z.boolean(),
  /** Windows that are compacted now; in a dry run: that would be. */
  windows: z.int(),
  /** Windows that were left for the next run, because this one took long enough. */
  waitingWindows: z.int(),
  /** Windows of the range that are still open. */
  openWindows: z.int(),
  /** Entries of the update index that newer exports had superseded. */
  supersededUpdates: z.int(),
});
export type CompactResult = z.infer<typeof compactResult>;

/** Removes what no reader needs of closed upload windows. */
export const compactJob: JobType<CompactData, CompactResult> = {
  name: "compact",
  data: compactData,
  result: compactResult,
};
