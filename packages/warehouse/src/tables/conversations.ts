import type { ConversationRecord } from "@conversation-export/domain";
import { type ColumnWriter, columnNames } from "./column-writer.ts";
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
