import { z } from "zod";
import type { JobType } from "./job.ts";

const instant = z.iso.datetime();

const compactData = z.object({
  /** Windows that lie in this range of upload times, `to` exclusive; null: all that are due. */
  range: z.object({ from: instant, to: instant }).nullable(),
  /** Also windows that have been compacted, and partitions whose merge would hardly pay. */
  force: z.boolean(),
  /** Only reports what would be done. */
  dryRun: z.boolean(),
});
export type CompactData = z.infer<typeof compactData>;

/**
 * Outcome for a partition. `would_merge` is for dry runs. `merged` and `skipped` (it is one part already, or
 * a merge would hardly pay) are final. `busy` (it is being written), `no_space`, `stopped` (merges are
 * switched off) and `disturbed` (rows were deleted meanwhile, so the comparison proves nothing) are retried
 * by a later job.
 */
export const PARTITION_OUTCOMES = [
  "would_merge",
  "merged",
  "skipped",
  "busy",
  "no_space",
  "stopped",
  "disturbed",
] as const;
export type PartitionOutcome = (typeof PARTITION_OUTCOMES)[number];

const compactResult = z.object({
  dryRun: z.boolean(),
  windows: z.int(),
  /** Windows of the range that are still open. */
  openWindows: z.int(),
  /** Entries of the update index that newer exports had superseded. */
  supersededUpdates: z.int(),
  /** Records that stood under more than one date of creation. */
  movedRecords: z.int(),
  /** Handoffs that were put under the date of the latest export. */
  movedHandoffs: z.int(),
  partitions: z.array(
    z.object({
      table: z.string(),
      partition: z.string(),
      outcome: z.enum(PARTITION_OUTCOMES),
      partsBefore: z.int(),
      partsAfter: z.int(),
      rowsBefore: z.int(),
      rowsAfter: z.int(),
      bytesBefore: z.int(),
      bytesAfter: z.int(),
      /** Readable records that were compared before and after, by key and hash. */
      compared: z.int(),
    }),
  ),
});
export type CompactResult = z.infer<typeof compactResult>;
export type CompactedPartition = CompactResult["partitions"][number];

/** Makes closed upload windows small and fast to read. */
export const compactJob: JobType<CompactData, CompactResult> = {
  name: "compact",
  data: compactData,
  result: compactResult,
};
