import { decideMerge, type Micros } from "@conversation-export/domain";
import type {
  CompactData,
  CompactedPartition,
  JobContext,
  PartitionOutcome,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { Partition, PartitionStore } from "@conversation-export/warehouse";

export type MergePartitionDeps = {
  readonly partitions: PartitionStore;
  /**
   * true: a job that drops parts ran at or after the instant (µs), or has begun and is to go on. ClickHouse
   * does not report such deletions.
   */
  readonly droppedSince: (instant: Micros) => Promise<boolean>;
  /** An INSERT in this time makes a partition busy. */
  readonly quietSeconds: number;
};

type Context = JobContext<CompactData>;

/**
 * Merges a partition into one part when that pays, and compares its readable records before and after.
 * @throws ServiceError `compaction_changed_records` when records are missing or differ; WarehouseError
 */
export type MergePartition = (context: Context, partition: Partition) => Promise<CompactedPartition>;

export const createMergePartition = (deps: MergePartitionDeps): MergePartition => {
  const { partitions, droppedSince, quietSeconds } = deps;

  /** Compares the records with those that were noted, also by an attempt that died. */
  const compareNoted = async (
    run: string,
    partition: Partition,
    { signal, log }: Context,
  ): Promise<{ compared: number; disturbed: boolean }> => {
    const notedAt = await partitions.notedAt(run);
    if (notedAt === null) return { compared: 0, disturbed: false };
    const { compared, missing, changed } = await partitions.compare(run, partition, signal);
    const isSame = missing === 0 && changed === 0;
    // An erasure, a backfill or retention may have deleted rows meanwhile: then the next job compares anew.
    const disturbed =
      !isSame && ((await droppedSince(notedAt)) || (await partitions.deletedSince(partition.table, notedAt)));
    if (disturbed)
      log.warn({ ...partition, missing, changed }, "rows were deleted while a partition was merged");
    await partitions.forget(run);
    if (isSame || disturbed) return { compared, disturbed };
    throw new ServiceError(
      "compaction_changed_records",
      `after the merge of partition ${partition.partition} of ${partition.table} ${missing} records are missing and ${changed} differ`,
    );
  };

  const mergeChecked = async (
    partition: Partition,
    context: Context,
  ): Promise<{ outcome: PartitionOutcome; compared: number }> => {
    const { signal } = context;
    const run = noteOf(partition);
    // A deletion that runs now and ends before the comparison would not be seen by it.
    if (await partitions.deletedSince(partition.table, null)) return { outcome: "disturbed", compared: 0 };
    await partitions.note(run, partition, signal);
    const isMerged = await partitions.merge(partition, signal);
    const { compared, disturbed } = await compareNoted(run, partition, context);
    return { outcome: disturbed ? "disturbed" : isMerged ? "merged" : "stopped", compared };
  };

  return async (context, partition) => {
    const { data } = context;
    if (!data.dryRun) await compareNoted(noteOf(partition), partition, context);
    const before = await partitions.facts(partition, quietSeconds);
    const decision = decideMerge(before, data.force);
    const { outcome, compared } =
      decision !== "merge"
        ? { outcome: decision, compared: 0 }
        : data.dryRun
          ? { outcome: "would_merge" as const, compared: 0 }
          : await mergeChecked(partition, context);
    const after = outcome === "merged" ? await partitions.facts(partition, quietSeconds) : before;
    return {
      ...partition,
      outcome,
      partsBefore: before.parts,
      partsAfter: after.parts,
      rowsBefore: before.rows,
      rowsAfter: after.rows,
      bytesBefore: before.bytes,
      bytesAfter: after.bytes,
      compared,
    };
  };
};

/** The name of a partition's note. One job at a time merges, so the partition is enough. */
const noteOf = ({ table, partition }: Partition): string => `compact ${table} ${partition}`;
