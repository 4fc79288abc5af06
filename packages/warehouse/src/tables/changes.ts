import { byEventType, type ExportRecord, RECORD_KINDS } from "@conversation-export/domain";
import type { TableBuffer } from "./table-buffer.ts";

export const CHANGES = "changes";

export const CHANGE_COLUMNS: readonly string[] = ["client_id", "kind", "stored_at", "id", "date_created"];

const FACTS = byEventType((kind) => {
  const { number, code } = RECORD_KINDS[kind];
  return { number, isDated: code !== null };
});

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
