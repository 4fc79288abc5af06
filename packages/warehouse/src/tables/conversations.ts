import { type ConversationRecord, RECORD_KINDS, type RightRow } from "@conversation-export/domain";
import {
  type ColumnWriter,
  columnNames,
  rowContent,
  textWithoutUpload,
  withoutUpload,
  wrongType,
} from "./row-content.ts";
import { STAMP_LENGTH, startRecordRow, type TableBuffer } from "./table-buffer.ts";

/** Columns for analysts. A new one also needs a migration and its value in the form of the record. */
const writeColumns = (to: ColumnWriter, columns: ConversationRecord["columns"]): void => {
  to.string(columns.chatterId, "chatter_id");
  to.string(columns.endUserId, "end_user_id");
  to.string(columns.language, "language");
  to.string(columns.platform, "platform");
  to.string(columns.device, "device");
  to.string(columns.browser, "browser");
  to.string(columns.resolution, "automated_resolution_classification");
  to.string(columns.topicLabel, "generated_topic_label");
  to.string(columns.lastAgentId, "last_agent_id");
  to.nullableUint8(columns.isEngaged, "is_engaged");
  to.nullableUint8(columns.isEscalated, "is_escalated");
  to.nullableUint8(columns.isTestUser, "is_test_user");
  to.nullableFloat64(columns.agentHandleTime, "agent_handle_time");
  to.nullableFloat64(columns.botHandleTime, "bot_handle_time");
  to.nullableFloat64(columns.csatScore, "csat_score");
};

export const CONVERSATION_COLUMNS: readonly string[] = [
  "client_id",
  "date_created",
  "conversation_id",
  "version",
  "exported_at",
  "uploaded_at",
  "date_updated",
  ...columnNames(writeColumns),
  "head",
  "tail",
];

export const encodeConversation = (table: TableBuffer, record: ConversationRecord): void => {
  const { row } = table;
  startRecordRow(table, record);
  row.uint64(record.dateUpdated);
  writeColumns(row, record.columns);
  table.stampAt(row.stringWithHole(record.beforeUpload, STAMP_LENGTH, record.afterUpload));
  row.string(record.tail);
  table.endRow();
};

export const conversationOf = ({ record }: RightRow): ConversationRecord =>
  record.type === RECORD_KINDS.conversation.type ? record : wrongType();

export const conversationContent = rowContent(conversationOf, (to, record) => {
  to.micros(record.version.exportedAt, "exported_at");
  to.micros(record.dateUpdated, "date_updated");
  writeColumns(to, record.columns);
  to.text(textWithoutUpload(record), withoutUpload("head"));
  to.string(record.tail, "tail");
});
