import { randomUUID } from "node:crypto";
import {
  decideMerge,
  type Micros,
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
import type {
  CleanupStore,
  FoundKeys,
  Partition,
  PartitionStore,
  WindowStore,
} from "@conversation-export/warehouse";
import { ROWS } from "./rows-lock.ts";
import { LEDGER } from "./windows.ts";

const SECOND = 1_000_000;
/** Keys of so many records are held in memory at a time. */
const RECORDS_AT_A_TIME = 1_000_000;

export type CompactionDeps = {
  readonly windows: WindowStore;
  readonly cleanup: CleanupStore;
  readonly partitions: PartitionStore;
  readonly exclusive: Pick<Exclusive, "run">;
  /** true: at or after the instant (µs) a job ran, or is half done, that drops parts; ClickHouse does not tell of these. */
  readonly droppedSince: (instant: Micros) => Promise<boolean>;
  readonly windowSeconds: number;
  /** How far back the INSERTs count that make a partition busy. */
  readonly quietSeconds: number;
  /** µs since the epoch */
  readonly now: () => Micros;
};

type Context = JobContext<CompactData>;

/** Outcomes after which nothing is left to do in a partition. */
const FINAL: ReadonlySet<PartitionOutcome> = new Set(["merged", "skipped"]);

const isTable = (name: string): name is WindowTable => WINDOW_TABLES.some((table) => table === name);
const startsOf = (lines: readonly UploadWindow[]): Micros[] => [...new Set(lines.map(({ start }) => start))];

/** Compacts upload windows that are closed; a window that has been compacted is left alone. */
export const createCompaction = (deps: CompactionDeps): JobHandler<CompactData, CompactResult> => {
  const length = deps.windowSeconds * SECOND;

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

  /** What a process that has died began to delete goes on in ClickHouse, also without a lock. */
  const refuseDeletions = async (): Promise<void> => {
    for (const table of WINDOW_TABLES) {
      if (!(await deps.partitions.deletedSince(table, null))) continue;
      throw new ServiceError("deletion_under_way", `rows of ${table} are being deleted`, { retryable: true });
    }
  };

  /** Removes what no reader needs of the records that were written in these windows. */
  const cleanUp = async (context: Context, due: readonly UploadWindow[]): Promise<FoundKeys> => {
    const { data, signal } = context;
    // Of this attempt alone: one that has lost its lock, but does not know yet, must find no keys of another.
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

  /** Changes lines of the ledger as they are now. */
  const change = (
    { signal }: Context,
    filter: Parameters<WindowStore["list"]>[0],
    changed: (lines: readonly UploadWindow[]) => UploadWindow[],
  ): Promise<void> =>
    deps.exclusive.run(LEDGER, signal, async (held) => {
      const lines = changed(await deps.windows.list(filter));
      held.throwIfAborted();
      await deps.windows.save(lines);
    });

  /** Notes that the windows are clean and which partitions are to be merged. A line that was opened again stays open. */
  const markCompacted = (context: Context, due: readonly UploadWindow[], found: FoundKeys): Promise<void> => {
    const now = deps.now();
    const seen = new Map(due.map((line) => [`${line.start} ${line.table}`, line]));
    return change(context, { since: Math.min(...startsOf(due)) }, (lines) => {
      const changed = lines.filter((line) => {
        const before = seen.get(`${line.start} ${line.table}`);
        return before !== undefined && before.reopened === line.reopened && line.state !== "open";
      });
      return changed.map((line) => {
        const cleaned = found.partitions.filter(({ table }) => table === line.table);
        const pending = new Set([
          ...line.pending,
          ...line.partitions,
          ...cleaned.map(({ partition }) => partition),
        ]);
        const { supersededUpdates, movedRecords, movedHandoffs } = found;
        const result = JSON.stringify({ supersededUpdates, movedRecords, movedHandoffs });
        const state = line.state === "backfilled" ? line.state : "compacted";
        return { ...line, state, compactedAt: now, pending: [...pending].sort(), result };
      });
    });
  };

  /** No window waits for a merge of this partition any more. */
  const settle = (context: Context, partition: Partition, outcome: CompactedPartition): Promise<void> =>
    change(context, { withPending: true }, (lines) =>
      lines
        .filter(({ table, pending }) => table === partition.table && pending.includes(partition.partition))
        .map((line) => ({
          ...line,
          pending: line.pending.filter((name) => name !== partition.partition),
          result: withPartition(line.result, outcome),
        })),
    );

  /** Compares the records with those that were noted. An attempt that died may have left its note. */
  const compareNoted = async (
    run: string,
    partition: Partition,
    { signal, log }: Context,
  ): Promise<{ compared: number; disturbed: boolean }> => {
    const notedAt = await deps.partitions.notedAt(run);
    if (notedAt === null) return { compared: 0, disturbed: false };
    const { compared, missing, changed } = await deps.partitions.compare(run, partition, signal);
    const isSame = missing === 0 && changed === 0;
    // An erasure, a backfill or retention that deletes meanwhile: the comparison says nothing, the next job looks again.
    const disturbed =
      !isSame &&
      ((await deps.droppedSince(notedAt)) || (await deps.partitions.deletedSince(partition.table, notedAt)));
    if (disturbed)
      log.warn({ ...partition, missing, changed }, "rows were deleted while a partition was merged");
    await deps.partitions.forget(run);
    if (isSame || disturbed) return { compared, disturbed };
    throw new ServiceError(
      "compaction_changed_records",
      `after the merge of partition ${partition.partition} of ${partition.table} ${missing} records are missing and ${changed} differ`,
    );
  };

  /** Merges the partition between two looks at its records. */
  const mergeChecked = async (
    partition: Partition,
    context: Context,
  ): Promise<{ outcome: PartitionOutcome; compared: number }> => {
    const { signal } = context;
    const run = noteOf(partition);
    // One that ends during the note would not be told from none.
    if (await deps.partitions.deletedSince(partition.table, null))
      return { outcome: "disturbed", compared: 0 };
    await deps.partitions.note(run, partition, signal);
    const isMerged = await deps.partitions.merge(partition, signal);
    const { compared, disturbed } = await compareNoted(run, partition, context);
    return { outcome: disturbed ? "disturbed" : isMerged ? "merged" : "stopped", compared };
  };

  const compactPartition = async (context: Context, partition: Partition): Promise<CompactedPartition> => {
    const { data } = context;
    if (!data.dryRun) await compareNoted(noteOf(partition), partition, context);
    const before = await deps.partitions.facts(partition, deps.quietSeconds);
    const decision = decideMerge(before, data.force);
    const { outcome, compared } =
      decision !== "merge"
        ? { outcome: decision, compared: 0 }
        : data.dryRun
          ? { outcome: "would_merge" as const, compared: 0 }
          : await mergeChecked(partition, context);
    const after = outcome === "merged" ? await deps.partitions.facts(partition, deps.quietSeconds) : before;
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

  /** Partitions that are to be looked at: those of these windows, and without a range all that have become cold. */
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
      if (due.length > 0 && !data.dryRun) await markCompacted(context, due, found);
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
        const outcome = await compactPartition(context, partition);
        partitions.push(outcome);
        if (data.dryRun) continue;
        if (FINAL.has(outcome.outcome)) await settle(context, partition, outcome);
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

/** One job at a time merges, so the partition names the note. */
const noteOf = ({ table, partition }: Partition): string => `compact ${table} ${partition}`;

/** Adds what became of a partition to the result of a window. */
const withPartition = (result: string, outcome: CompactedPartition): string => {
  const known = (result === "" ? {} : JSON.parse(result)) as { partitions?: CompactedPartition[] };
  const others = (known.partitions ?? []).filter(({ partition }) => partition !== outcome.partition);
  return JSON.stringify({ ...known, partitions: [...others, outcome] });
};
