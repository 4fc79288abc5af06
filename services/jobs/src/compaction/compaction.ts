import { randomUUID } from "node:crypto";
import {
  type Micros,
  MICROS_IN_SECOND,
  parseTimestamp,
  type UploadWindow,
  waitsForCompaction,
  WINDOW_TABLES,
  type WindowTable,
} from "@conversation-export/domain";
import {
  type CompactData,
  type CompactedPartition,
  compactJob,
  type CompactResult,
  type Exclusive,
  type JobContext,
  type JobHandler,
  type PartitionOutcome,
} from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import type { CleanupStore, FoundKeys, Partition, WindowStore } from "@conversation-export/warehouse";
import { createMergePartition, type MergePartitionDeps } from "./merge-partition.ts";
import { ROWS } from "../process/locks.ts";
import { createWindowLedger } from "./window-ledger.ts";

/** Number of records whose keys are held in memory at a time. */
const RECORDS_AT_A_TIME = 1_000_000;

export type CompactionDeps = MergePartitionDeps & {
  readonly windows: WindowStore;
  readonly cleanup: CleanupStore;
  readonly exclusive: Pick<Exclusive, "run">;
  readonly windowSeconds: number;
  /** µs since the epoch */
  readonly now: () => Micros;
};

type Context = JobContext<CompactData>;

/** Outcomes that leave nothing to do in a partition. */
const FINAL: ReadonlySet<PartitionOutcome> = new Set(["merged", "skipped"]);

const isTable = (name: string): name is WindowTable => WINDOW_TABLES.some((table) => table === name);
const startsOf = (lines: readonly UploadWindow[]): Micros[] => [...new Set(lines.map(({ start }) => start))];

/** Compacts closed upload windows that have not been compacted yet. */
export const createCompaction = (deps: CompactionDeps): JobHandler<CompactData, CompactResult> => {
  const length = deps.windowSeconds * MICROS_IN_SECOND;
  const mergePartition = createMergePartition(deps);
  const ledger = createWindowLedger(deps);

  const rangeOf = ({ range }: CompactData): { since: Micros; to: Micros } => ({
    since: range === null ? 0 : (parseTimestamp(range.from) ?? 0),
    // A window counts when all of it lies in the range.
    to: range === null ? Number.MAX_SAFE_INTEGER : (parseTimestamp(range.to) ?? 0) - length + 1,
  });

  const linesIn = async (data: CompactData): Promise<readonly UploadWindow[]> => {
    const { since, to } = rangeOf(data);
    const lines = await deps.windows.list({ since });
    return lines.filter(({ start }) => start < to);
  };

  /**
   * Deletions that a dead process began go on in ClickHouse, although its lock is gone.
   * @throws ServiceError
   */
  const refuseDeletions = async (): Promise<void> => {
    for (const table of WINDOW_TABLES) {
      if (!(await deps.partitions.deletedSince(table, null))) continue;
      throw new ServiceError("deletion_under_way", `rows of ${table} are being deleted`, { retryable: true });
    }
  };

  /** Removes what no reader needs of the records that were written in these windows. */
  const cleanUp = async (context: Context, due: readonly UploadWindow[]): Promise<FoundKeys> => {
    const { data, signal } = context;
    // A new name for each attempt: one that lost its lock without knowing must not find the keys of another.
    const run = randomUUID();
    const scope = { starts: startsOf(due), length };
    const total = { supersededUpdates: 0, movedRecords: 0, movedHandoffs: 0 };
    const partitions = new Map<string, FoundKeys["partitions"][number]>();
    try {
      const records = await deps.cleanup.begin(run, scope, signal);
      const chunks = Math.max(1, Math.ceil(records / RECORDS_AT_A_TIME));
      for (let chunk = 0; chunk < chunks; chunk += 1) {
        signal.throwIfAborted();
        await context.progress({
          done: chunk,
          total: chunks,
          unit: "steps",
          note: "removing superseded rows",
        });
        const share = { ...scope, chunk, chunks };
        const found = await deps.exclusive.run(ROWS, signal, async (held) => {
          if (!data.dryRun) await refuseDeletions();
          const keys = await deps.cleanup.find(run, share, held);
          if (!data.dryRun) await deps.cleanup.remove(run, share, keys, held);
          return keys;
        });
        total.supersededUpdates += found.supersededUpdates;
        total.movedRecords += found.movedRecords;
        total.movedHandoffs += found.movedHandoffs;
        for (const partition of found.partitions)
          partitions.set(`${partition.table} ${partition.partition}`, partition);
      }
    } finally {
      await deps.cleanup.forget();
    }
    return { ...total, partitions: [...partitions.values()] };
  };

  /** Partitions to look at: those of these windows, and without a range all that have become cold. */
  const candidatesOf = async (
    data: CompactData,
    due: readonly UploadWindow[],
    found: FoundKeys,
  ): Promise<Partition[]> => {
    const lines = data.dryRun ? [] : (await linesIn(data)).filter(({ pending }) => pending.length > 0);
    const candidates = [
      ...lines.flatMap(({ table, pending }) => pending.map((partition) => ({ table, partition }))),
      ...(data.dryRun
        ? [
            ...due.flatMap(({ table, partitions }) => partitions.map((partition) => ({ table, partition }))),
            ...found.partitions,
          ]
        : []),
      ...(data.range === null ? await deps.partitions.coldPartitions() : []),
    ];
    const unique = new Map<string, Partition>();
    for (const { table, partition } of candidates)
      if (isTable(table)) unique.set(`${table} ${partition}`, { table, partition });
    return [...unique.values()];
  };

  return {
    type: compactJob,
    async run(context) {
      const { data, signal, log } = context;
      const lines = await linesIn(data);
      const openLines = lines.filter(({ state }) => state === "open");
      const openStarts = new Set(startsOf(openLines));
      // A window is due when it is closed for all tables.
      const due = lines.filter(
        (line) => !openStarts.has(line.start) && (waitsForCompaction(line) || data.force),
      );
      const found: FoundKeys =
        due.length === 0
          ? { supersededUpdates: 0, movedRecords: 0, movedHandoffs: 0, partitions: [] }
          : await cleanUp(context, due);
      if (due.length > 0 && !data.dryRun) await ledger.markCompacted(due, found, deps.now(), signal);
      const partitions: CompactedPartition[] = [];
      const candidates = await candidatesOf(data, due, found);
      for (const [index, partition] of candidates.entries()) {
        signal.throwIfAborted();
        await context.progress({
          done: index,
          total: candidates.length,
          unit: "partitions",
          note: `${partition.table} ${partition.partition}`,
        });
        const outcome = await mergePartition(context, partition);
        partitions.push(outcome);
        if (data.dryRun) continue;
        if (FINAL.has(outcome.outcome)) await ledger.settle(partition, outcome, signal);
        else log.info(outcome, "a partition waits for its merge");
      }
      await context.progress({ done: candidates.length, total: candidates.length, unit: "partitions" });
      return {
        dryRun: data.dryRun,
        windows: startsOf(due).length,
        openWindows: openStarts.size,
        supersededUpdates: found.supersededUpdates,
        movedRecords: found.movedRecords,
        movedHandoffs: found.movedHandoffs,
        partitions,
      };
    },
  };
};
