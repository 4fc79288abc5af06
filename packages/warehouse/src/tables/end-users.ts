import type { EndUserRecord } from "@conversation-export/domain";
import { type TableBuffer, writeVersion } from "./table-buffer.ts";

export const END_USER_COLUMNS: readonly string[] = [
  "client_id",
  "end_user_id",
  "version",
  "exported_at",
  "uploaded_at",
  "date_created",
  "date_updated",
  "email",
  "external_ids",
  "record",
];

export const encodeEndUser = (table: TableBuffer, record: EndUserRecord): void => {
  const { row } = table;
  row.string(record.clientId);
  row.string(record.id);
  writeVersion(row, record.version);
  row.uint64(record.version.exportedAt);
  table.uploadedAt();
  row.uint64(record.dateCreated);
  row.uint64(record.dateUpdated);
  row.string(record.email);
  row.varUint(record.externalIds.length);
  for (const id of record.externalIds) row.string(id);
  row.string(record.record);
  table.endRow();
};
