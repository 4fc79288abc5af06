import {
  type ExportRecord,
  EVENT_TYPES,
  type RightRow,
  rightRowsOf,
  type StoredRow,
} from "@conversation-export/domain";
import { rowDigest, type RecordReader, recordKey } from "@conversation-export/warehouse";
import type { RowPreview } from "./add-events.ts";

/** Prefix of the names of runs. */
export const PREVIEW_RUN = "preview ";

/** Whether the table holds the rows that make a version live. */
const isOwn = ({ table }: { readonly table: string }): boolean =>
  table !== "handoffs" && table !== "conversation_updates";

/**
 * Tells for each row of a record whether readers would see a difference to the stored rows. A newer export
 * counts under any date of creation, since one row is left of an id in the end.
 */
export function previewOf(
  record: ExportRecord,
  stored: readonly StoredRow[],
  digestOf: (row: RightRow) => string,
): RowPreview[] {
  const rows = rightRowsOf(record);
  const own = rows.find(isOwn);
  const isSuperseded = stored.some(
    (other) => isOwn(other) && own !== undefined && other.version > own.version,
  );
  return rows.map((row) => {
    const { table, date, target, targetKind, version } = row;
    const others = stored.filter(
      (other) => other.table === table && other.target === target && other.targetKind === targetKind,
    );
    const isBehind = table === "handoffs" ? others.some((other) => other.version > version) : isSuperseded;
    const same = others.findLast(
      (other) => other.version === version && (table === "handoffs" || other.date === date),
    );
    return { table, changes: !isBehind && (same === undefined || same.digest !== digestOf(row)) };
  });
}

/**
 * Previews the rows of records, in their order. Their ids are noted in the warehouse meanwhile.
 * @throws WarehouseError
 */
export const createPreview =
  (deps: {
    readonly reader: Pick<RecordReader, "note" | "stored" | "forget">;
    readonly newRun: () => string;
  }) =>
  async (records: readonly ExportRecord[], signal: AbortSignal): Promise<RowPreview[][]> => {
    const { reader } = deps;
    const run = deps.newRun();
    const names = new Map(
      records.map(({ type, clientId, id }) => [`${type} ${recordKey(clientId, id)}`, { type, clientId, id }]),
    );
    const stored = new Map<ExportRecord["type"], ReadonlyMap<string, readonly StoredRow[]>>();
    if (names.size === 0) return [];
    try {
      await reader.note(run, [...names.values()], signal);
      for (const type of EVENT_TYPES) {
        if (records.some((record) => record.type === type))
          stored.set(type, await reader.stored(run, type, signal));
      }
    } finally {
      // Keys that cannot be removed now are removed when this process has ended.
      await reader.forget(run).catch(() => {});
    }
    return records.map((record) => {
      const rows = stored.get(record.type)?.get(recordKey(record.clientId, record.id)) ?? [];
      return previewOf(record, rows, rowDigest);
    });
  };
