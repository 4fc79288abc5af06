import type { HandoffEntry } from "../kinds/handoffs.ts";
import { type RecordTable, TABLE_FACTS, TABLES_OF } from "../kinds/record-kinds.ts";
import type { ExportRecord } from "../kinds/export-record.ts";
import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";

export type RowKey = {
  readonly table: RecordTable;
  /** Of creation; in `conversation_updates` of the update; for end users 0. */
  readonly date: Micros;
  /** Handoffs only; 1: `handoff_id`, 2: `id`. */
  readonly target: string;
  readonly targetKind: 0 | 1 | 2;
  readonly version: bigint;
};

/** Of equal key and version, in order of insertion. */
export type StoredRow = RowKey & {
  readonly uploadedAt: Micros;
  /** Without the upload; empty: write the row again. */
  readonly digest: string;
};

export type RightRow = RowKey & {
  readonly record: ExportRecord;
  readonly entry: HandoffEntry | null;
};

export function versionNumber({ exportedAt, partition, offset }: Version): bigint {
  return (BigInt(exportedAt) << 64n) | (BigInt(partition) << 48n) | BigInt(offset);
}

/** date_created << 128 | the export's version */
export function handoffVersion(entry: HandoffEntry, ofExport: bigint): bigint {
  return (BigInt(entry.dateCreated) << 128n) | ofExport;
}

const NO_TARGET = { target: "", targetKind: 0 } as const;

export function rightRowsOf(record: ExportRecord): RightRow[] {
  const version = versionNumber(record.version);
  return TABLES_OF[record.type].flatMap((table): RightRow[] => {
    const { keyDate } = TABLE_FACTS[table];
    const date = keyDate === null ? 0 : keyDate === "date_updated" ? record.dateUpdated : record.dateCreated;
    if (table !== "handoffs") return [{ ...NO_TARGET, table, date, version, record, entry: null }];
    return record.handoffs.map((entry) => ({
      table,
      date,
      target: entry.target,
      targetKind: entry.targetKind === "handoff_id" ? 1 : 2,
      version: handoffVersion(entry, version),
      record,
      entry,
    }));
  });
}
