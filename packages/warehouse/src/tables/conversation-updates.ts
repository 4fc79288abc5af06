import type { ConversationRecord } from "@conversation-export/domain";
import { conversationOf, type TextPlace } from "./conversations.ts";
import { rowContent, textWithoutUpload, withoutUpload } from "./row-content.ts";
import { type TableBuffer, writeVersion } from "./table-buffer.ts";

export const UPDATE_COLUMNS: readonly string[] = [
  "client_id",
  "date_updated",
  "conversation_id",
  "version",
  "date_created",
  "uploaded_at",
  "chatter_id",
  "end_user_id",
  "head",
  "tail",
];

/** Writes a row of the update index, with the texts copied from the last row of `conversations`. */
export const encodeUpdate = (
  table: TableBuffer,
  record: ConversationRecord,
  conversations: TableBuffer,
  { textStart, stampStart }: TextPlace,
): void => {
  const { row } = table;
  row.string(record.clientId);
  row.uint64(record.dateUpdated);
  row.string(record.id);
  writeVersion(row, record.version);
  row.uint64(record.dateCreated);
  table.uploadedAt();
  row.string(record.columns.chatterId);
  row.string(record.columns.endUserId);
  const at = row.copyFrom(conversations.row, textStart, conversations.row.length);
  table.stampAt(at + stampStart - textStart);
  table.endRow();
};

export const updateContent = rowContent(conversationOf, (to, record) => {
  to.micros(record.dateCreated, "date_created");
  to.text(textWithoutUpload(record), withoutUpload("head"));
  to.string(record.tail, "tail");
});
