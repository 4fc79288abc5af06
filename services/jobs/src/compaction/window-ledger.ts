import type { Micros, UploadWindow } from "@conversation-export/domain";
import type { CompactedPartition, Exclusive } from "@conversation-export/queue";
import type { FoundKeys, Partition, WindowStore } from "@conversation-export/warehouse";
import { LEDGER } from "../process/locks.ts";

/** Notes in the ledger of upload windows what compaction did. @throws WarehouseError */
export type WindowLedger = {
  /**
   * Marks the lines `due` as compacted at `now` (µs) and the partitions of `found` as to be merged. A line
   * that was opened again meanwhile stays open.
   */
  markCompacted(
    due: readonly UploadWindow[],
    found: FoundKeys,
    now: Micros,
    signal: AbortSignal,
  ): Promise<void>;
  /** Marks the merge of this partition as settled in every window that waits for it. */
  settle(partition: Partition, outcome: CompactedPartition, signal: AbortSignal): Promise<void>;
};

export const createWindowLedger = (deps: {
  readonly windows: Pick<WindowStore, "list" | "save">;
  readonly exclusive: Pick<Exclusive, "run">;
}): WindowLedger => {
  const { windows, exclusive } = deps;

  const change = (
    signal: AbortSignal,
    filter: Parameters<WindowStore["list"]>[0],
    changed: (lines: readonly UploadWindow[]) => UploadWindow[],
  ): Promise<void> =>
    exclusive.run(LEDGER, signal, async (held) => {
      const lines = changed(await windows.list(filter));
      held.throwIfAborted();
      await windows.save(lines);
    });

  return {
    markCompacted: (due, found, now, signal) => {
      const seen = new Map(due.map((line) => [`${line.start} ${line.table}`, line]));
      const { supersededUpdates, movedRecords, movedHandoffs } = found;
      const result = JSON.stringify({ supersededUpdates, movedRecords, movedHandoffs });
      const since = Math.min(...due.map(({ start }) => start));
      return change(signal, { since }, (lines) => {
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
          const state = line.state === "backfilled" ? line.state : "compacted";
          return { ...line, state, compactedAt: now, pending: [...pending].sort(), result };
        });
      });
    },
    settle: (partition, outcome, signal) =>
      change(signal, { withPending: true }, (lines) =>
        lines
          .filter(({ table, pending }) => table === partition.table && pending.includes(partition.partition))
          .map((line) => ({
            ...line,
            pending: line.pending.filter((name) => name !== partition.partition),
            result: withPartition(line.result, outcome),
          })),
      ),
  };
};

/** Adds the outcome of a partition to the result of a window. */
const withPartition = (result: string, outcome: CompactedPartition): string => {
  const known = (result === "" ? {} : JSON.parse(result)) as { partitions?: CompactedPartition[] };
  const others = (known.partitions ?? []).filter(({ partition }) => partition !== outcome.partition);
  return JSON.stringify({ ...known, partitions: [...others, outcome] });
};
