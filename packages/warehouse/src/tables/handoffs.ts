import type { ExportRecord } from "@conversation-export/domain";
import { type TableBuffer, writeVersion } from "./table-buffer.ts";

export const HANDOFF_COLUMNS: readonly string[] = [
  "client_id",
  "conversation_date_created",
  "conversation_id",
  "target",
  "target_kind",
  "version",
  "uploaded_at",
  "date_created",
  "name",
  "outcome_status",
  "reason_code",
  "entry",
];

/** Version: the attempt's date, then the export's version. */
export const encodeHandoffs = (table: TableBuffer, record: ExportRecord): void => {
  const { row } = table;
  for (const entry of record.handoffs) {
    row.string(record.clientId);
    row.uint64(record.dateCreated);
    row.string(record.id);
    row.string(entry.target);
    row.uint8(entry.targetKind === "handoff_id" ? 1 : 2);
    writeVersion(row, record.version);
    row.uint64(entry.dateCreated);
    row.uint64(0);
    table.uploadedAt();
    row.uint64(entry.dateCreated);
    row.string(entry.name ?? "");
    row.string(entry.outcomeStatus ?? "");
    row.nullableString(entry.reasonCode);
    row.string(entry.entry);
    table.endRow();
  }
};
