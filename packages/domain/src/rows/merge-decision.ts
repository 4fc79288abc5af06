/** Facts by which `decideMerge` decides whether a partition is merged to one part. */
export type PartitionFacts = {
  readonly parts: number;
  readonly rows: number;
  readonly bytes: number;
  /** Of the largest part. */
  readonly largestBytes: number;
  /** true: at least one part came from an INSERT and was never merged. */
  readonly unmerged: boolean;
  /** true: rows are hidden by a deletion, but still there. */
  readonly masked: boolean;
  /** true: old enough for the smaller codec, and not written with it yet. */
  readonly recompress: boolean;
  /** INSERTs of the last `quietSeconds`, and their rows. */
  readonly recentInserts: number;
  readonly recentRows: number;
  readonly quietSeconds: number;
  /** Free room on the disk of the partition. */
  readonly freeBytes: number;
};

export type MergeDecision = "merge" | "skipped" | "busy" | "no_space";

/** Smaller partitions are rewritten within seconds. */
const SMALL_BYTES = 256 * 1024 * 1024;
/** A larger partition is rewritten when this share of it lies outside its largest part. */
const MIN_SHARE = 0.1;
/**
 * A partition is written heavily when its INSERTs come faster than this and bring such a share of it or so
 * many rows.
 */
const MAX_RECENT_SHARE = 0.05;
const MAX_ROWS_PER_SECOND = 1_000;
const SECONDS_BETWEEN_INSERTS = 10;
/** A merge writes the partition anew beside the old parts, and inserts go on meanwhile. */
const SPACE_FACTOR = 2;

/** `force` merges also where it hardly pays, but never where it could do harm. */
export function decideMerge(facts: PartitionFacts, force = false): MergeDecision {
  const isMerged = facts.parts <= 1 && !facts.unmerged && !facts.masked && !facts.recompress;
  if (facts.parts === 0 || isMerged) return "skipped";
  const isBusy =
    facts.recentInserts > facts.quietSeconds / SECONDS_BETWEEN_INSERTS &&
    facts.recentRows > Math.min(facts.rows * MAX_RECENT_SHARE, MAX_ROWS_PER_SECOND * facts.quietSeconds);
  if (isBusy) return "busy";
  if (facts.freeBytes < facts.bytes * SPACE_FACTOR) return "no_space";
  const pays =
    facts.recompress ||
    facts.bytes < SMALL_BYTES ||
    facts.bytes - facts.largestBytes >= facts.bytes * MIN_SHARE;
  return pays || force ? "merge" : "skipped";
}
