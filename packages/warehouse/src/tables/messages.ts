import type { MessageRecord } from "@conversation-export/domain";
import { type ColumnWriter, columnNames } from "./column-writer.ts";
import { STAMP_LENGTH, startRecordRow, type TableBuffer } from "./table-buffer.ts";

/** The column is a UInt8, so other ratings become NULL there; the public record keeps them. */
const fitting = (review: number | null): number | null =>
  review !== null && review >= 0 && review <= 255 ? review : null;

/** Columns for analysts. A new one needs a line here and a migration. */
const writeColumns = (to: ColumnWriter, columns: MessageRecord["columns"]): void => {
  to.string(columns.chatterId, "chatter_id");
  to.string(columns.sender, "sender");
  to.string(columns.recipient, "recipient");
  to.string(columns.messageType, "message_type");
  to.string(columns.answerId, "answer_id");
  to.string(columns.inResponseTo, "in_response_to");
  to.nullableUint8(columns.linkWasClicked, "link_was_clicked");
  to.nullableUint8(fitting(columns.review), "review");
};

export const MESSAGE_COLUMNS: readonly string[] = [
  "client_id",
  "date_created",
  "message_id",
  "version",
  "exported_at",
  "uploaded_at",
  "conversation_id",
  ...columnNames(writeColumns),
  "record",
];

export const encodeMessage = (table: TableBuffer, record: MessageRecord): void => {
  const { row } = table;
  startRecordRow(table, record);
  row.string(record.conversationId);
  writeColumns(row, record.columns);
  table.stampAt(row.stringWithHole(record.beforeUpload, STAMP_LENGTH, record.afterUpload));
  table.endRow();
};
