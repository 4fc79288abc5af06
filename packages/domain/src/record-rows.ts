import type { EventType } from "./envelope.ts";
import type { HandoffEntry } from "./handoffs.ts";
import type { ExportRecord } from "./process-event.ts";
import type { Micros } from "./timestamp.ts";
import type { Version } from "./version.ts";

/** The tables that hold the rows of records, in the order in which they are written. */
export const RECORD_TABLES = [
  "handoffs",
  "conversation_updates",
  "conversations",
  "messages",
  "end_users",
] as const;
export type RecordTable = (typeof RECORD_TABLES)[number];

/** Where the rows of each type of record stand. */
export const TABLES_OF: Readonly<Record<EventType, readonly RecordTable[]>> = {
  "conversation.exported": ["handoffs", "conversation_updates", "conversations"],
  "message.exported": ["messages"],
  "end_user.exported": ["end_users"],
};

/** One row of a record: its key beside client and record, and its version as the warehouse has it. */
export type RowKey = {
  readonly table: RecordTable;
  /** Date of the key: that of creation; in `conversation_updates` that of the update; of an end user 0. */
  readonly date: Micros;
  /** Of a handoff, else empty and 0; 1 is a `handoff_id`, 2 an `id`. */
  readonly target: string;
  readonly targetKind: 0 | 1 | 2;
  readonly version: bigint;
};

/** A row that stands in the warehouse. Rows of equal key and version are given in the order of their insertion. */
export type StoredRow = RowKey & {
  readonly uploadedAt: Micros;
  /** Of everything that the row says beside its key, version and upload. */
  readonly digest: string;
};

/** A row as it should be, with the export that it comes from. */
export type RightRow = RowKey & {
  /** Its `dateCreated` is the date of the row's key, which for a handoff may be that of a later export. */
  readonly record: ExportRecord;
  /** Of a handoff. */
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

/** The rows that one export alone leads to, in the order in which they are written; its handoffs under `home`. */
export function rightRowsOf(record: ExportRecord, home: Micros = record.dateCreated): RightRow[] {
  const version = versionNumber(record.version);
  const own = { ...NO_TARGET, version, record, entry: null };
  switch (record.type) {
    case "message.exported":
      return [{ ...own, table: "messages", date: record.dateCreated }];
    case "end_user.exported":
      return [{ ...own, table: "end_users", date: 0 }];
    case "conversation.exported":
      return [
        ...record.handoffs.map(
          (entry): RightRow => ({
            table: "handoffs",
            date: home,
            target: entry.target,
            targetKind: entry.targetKind === "handoff_id" ? 1 : 2,
            version: handoffVersion(entry, version),
            record: home === record.dateCreated ? record : { ...record, dateCreated: home },
            entry,
          }),
        ),
        { ...own, table: "conversation_updates", date: record.dateUpdated },
        { ...own, table: "conversations", date: record.dateCreated },
      ];
  }
}
