import { byRecordTable, ownTableOf, type RecordKind, type RecordTable } from "@conversation-export/domain";
import { CHANGE_COLUMNS, CHANGES, encodeChange } from "./changes.ts";
import { encodeUpdate, UPDATE_COLUMNS } from "./conversation-updates.ts";
import { encodeHandoffs, HANDOFF_COLUMNS } from "./handoffs.ts";
import { ownEncoding } from "./own-table.ts";
import { encodeRecordDate, RECORD_DATE_COLUMNS, RECORD_DATES } from "./record-dates.ts";
import type { Encoding } from "./table-buffer.ts";

export type EncodedTable = RecordTable | typeof RECORD_DATES | typeof CHANGES;

const FURTHER: Readonly<Partial<Record<RecordTable, Encoding>>> = {
  handoffs: { columns: HANDOFF_COLUMNS, encode: encodeHandoffs },
  conversation_updates: { columns: UPDATE_COLUMNS, encode: encodeUpdate },
};

const encodingOf = (table: RecordTable, kind: RecordKind): Encoding => {
  if (table === ownTableOf(kind).name) return ownEncoding(kind);
  const encoding = FURTHER[table];
  if (encoding === undefined) throw new TypeError(`no encoding for the table ${table}`);
  return encoding;
};

export const ENCODINGS: Readonly<Record<EncodedTable, Encoding>> = {
  [RECORD_DATES]: { columns: RECORD_DATE_COLUMNS, encode: encodeRecordDate },
  [CHANGES]: { columns: CHANGE_COLUMNS, encode: encodeChange },
  ...byRecordTable(({ name, kind }) => encodingOf(name, kind)),
};
