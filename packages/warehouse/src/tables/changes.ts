import { byEventType, type EventType, type ExportRecord, RECORD_KINDS } from "@conversation-export/domain";
import type { TableBuffer } from "./table-buffer.ts";

/** The table of the order in which records were stored. */
export const CHANGES = "changes";

export const CHANGE_COLUMNS: readonly string[] = ["client_id", "kind", "stored_at", "id", "date_created"];

/** Values of the column `kind`. */
const NUMBERS = { conversation: 1, message: 2, end_user: 3 } as const;
const NUMBER_OF: Readonly<Record<EventType, number>> = byEventType((kind) => NUMBERS[kind]);

/** Writes that a record is stored. */
export const encodeChange = (table: TableBuffer, record: ExportRecord): void => {
  const { row } = table;
  row.string(record.clientId);
  row.uint8(NUMBER_OF[record.type]);
  table.storedAt();
  row.string(record.id);
  // The key of end users has no date.
  row.uint64(record.type === RECORD_KINDS.end_user.type ? 0 : record.dateCreated);
  table.endRow();
};
