import type { ExportRecord } from "@conversation-export/domain";
import { type TableBuffer, writeVersion } from "./table-buffer.ts";

export const UPDATE_COLUMNS: readonly string[] = [
  "client_id",
  "date_updated",
  "conversation_id",
  "version",
  "date_created",
  "uploaded_at",
];

export const encodeUpdate = (table: TableBuffer, record: ExportRecord): void => {
  const { row } = table;
  row.string(record.clientId);
  row.uint64(record.dateUpdated);
  row.string(record.id);
  writeVersion(row, record.version);
  row.uint64(record.dateCreated);
  table.uploadedAt();
  table.endRow();
};
