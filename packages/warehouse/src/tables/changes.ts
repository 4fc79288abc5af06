import { byEventType, type ExportRecord, RECORD_KINDS } from "@conversation-export/domain";
import type { TableBuffer } from "./table-buffer.ts";

/** The table of the order in which records were stored. */
export const CHANGES = "changes";

export const CHANGE_COLUMNS: readonly string[] = ["client_id", "kind", "stored_at", "id", "date_created"];

/** Of each type of event: the value of the column `kind`, and whether the key of the record has a date. */
const FACTS = byEventType((kind) => {
  const { number, code } = RECORD_KINDS[kind];
  return { number, isDated: code !== null };
});

/** Writes that a record is stored. */
export const encodeChange = (table: TableBuffer, record: ExportRecord): void => {
  const { row } = table;
  const { number, isDated } = FACTS[record.type];
  row.string(record.clientId);
  row.uint8(number);
  table.storedAt();
  row.string(record.id);
  row.uint64(isDated ? record.dateCreated : 0);
  table.endRow();
};
