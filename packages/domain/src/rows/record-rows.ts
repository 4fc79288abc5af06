import type { HandoffEntry } from "../kinds/handoffs.ts";
import { type RecordTable, TABLE_FACTS, TABLES_OF } from "../kinds/record-kinds.ts";
import type { ExportRecord } from "../kinds/export-record.ts";
import type { Micros } from "../event/timestamp.ts";
import type { Version } from "../event/version.ts";

/** One row of a record: its key beside client and record, and its version as the warehouse has it. */
export type RowKey = {
  readonly table: RecordTable;
  /** Date of the key: that of creation; in `conversation_updates` that of the update; of an end user 0. */
  readonly date: Micros;
  /** Set for handoffs, else empty and 0; 1 is a `handoff_id`, 2 an `id`. */
  readonly target: string;
  readonly targetKind: 0 | 1 | 2;
  readonly version: bigint;
};

/**
 * A row that is in the warehouse. Rows of equal key and version are given in the order of their
 * insertion.
 */
export type StoredRow = RowKey & {
  readonly uploadedAt: Micros;
  /** Digest of all values except the upload; empty when the row has to be written again whatever it holds. */
  readonly digest: string;
};

/** A row as it should be, with the export that it comes from. */
export type RightRow = RowKey & {
  readonly record: ExportRecord;
  /** null unless it is a row of `handoffs`. */
  readonly entry: HandoffEntry | null;
};

/** exported_at << 64 | partition << 48 | offset */
export function versionNumber({ exportedAt, partition, offset }: Version): bigint {
  return (BigInt(exportedAt) << 64n) | (BigInt(partition) << 48n) | BigInt(offset);
}

/** date_created << 128 | version of the export */
export function handoffVersion(entry: HandoffEntry, ofExport: bigint): bigint {
  return (BigInt(entry.dateCreated) << 128n) | ofExport;
}

const NO_TARGET = { target: "", targetKind: 0 } as const;

/** The rows of one export in the order of insertion. */
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
