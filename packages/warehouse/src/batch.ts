import {
  type ConversationRecord,
  type EndUserRecord,
  type EventType,
  type ExportRecord,
  type Micros,
  type MessageRecord,
  monthOf,
  type Version,
} from "@conversation-export/domain";
import { createLandingRows, type LandingEvent } from "./landing-rows.ts";
import type { RowBinary } from "./row-binary.ts";
import { createTableBuffer, STAMP_LENGTH, type TableBuffer } from "./table-buffer.ts";

// ClickHouse takes at most 100 partitions in one block; a batch is closed before it spans more.
const MAX_PARTITIONS = 90;

/** Rows of one kind of record, ready to be inserted table by table. */
export type Batch = {
  readonly type: EventType;
  /** Appends the rows of one record; `event` is what a batch with landing keeps. */
  add(record: ExportRecord, event?: LandingEvent): void;
  /** Records added. */
  records(): number;
  /** Rows of all tables together. */
  rows(): number;
  bytes(): number;
  /** Empties the batch and keeps its memory: fresh pages cost more than the copying that fills them. */
  clear(): void;
  /** Bytes set aside. */
  capacity(): number;
  /** true when a record of yet another month must go to the next batch. */
  spansTooManyPartitions(): boolean;
  /** Sets the instant of upload of every row, µs since the epoch. */
  fillUpload(instant: Micros): void;
  /** The INSERTs for records `from` (inclusive) to `to` (exclusive), in the order in which they must be acknowledged. */
  inserts(from: number, to: number): readonly TableInsert[];
};

export type TableInsert = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: number;
  readonly body: Buffer;
};

type Encoder = {
  /** In the order of insertion: the record's own table last, for its row makes the version live. */
  readonly tables: readonly TableBuffer[];
  encode(record: ExportRecord): void;
};

function writeVersion(row: RowBinary, version: Version): void {
  row.busPosition(version.partition, version.offset);
  row.uint64(version.exportedAt);
}

const CONVERSATION_COLUMNS = [
  "client_id",
  "date_created",
  "conversation_id",
  "version",
  "exported_at",
  "uploaded_at",
  "date_updated",
  "chatter_id",
  "end_user_id",
  "language",
  "platform",
  "device",
  "browser",
  "automated_resolution_classification",
  "generated_topic_label",
  "last_agent_id",
  "is_engaged",
  "is_escalated",
  "is_test_user",
  "agent_handle_time",
  "bot_handle_time",
  "csat_score",
  "head",
  "tail",
] as const;

const UPDATE_COLUMNS = [
  "client_id",
  "date_updated",
  "conversation_id",
  "version",
  "date_created",
  "uploaded_at",
  "head",
  "tail",
] as const;

const HANDOFF_COLUMNS = [
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
] as const;

const MESSAGE_COLUMNS = [
  "client_id",
  "date_created",
  "message_id",
  "version",
  "exported_at",
  "uploaded_at",
  "conversation_id",
  "chatter_id",
  "sender",
  "recipient",
  "message_type",
  "answer_id",
  "in_response_to",
  "link_was_clicked",
  "review",
  "record",
] as const;

const END_USER_COLUMNS = [
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
] as const;

/** The first six columns of conversations and of messages. */
function startRow(table: TableBuffer, record: ConversationRecord | MessageRecord): void {
  const { row } = table;
  row.string(record.clientId);
  row.uint64(record.dateCreated);
  row.string(record.id);
  writeVersion(row, record.version);
  row.uint64(record.version.exportedAt);
  table.uploadedAt();
}

function conversationEncoder(initialBytes: number): Encoder {
  const handoffs = createTableBuffer("handoffs", HANDOFF_COLUMNS, initialBytes >> 3);
  const updates = createTableBuffer("conversation_updates", UPDATE_COLUMNS, initialBytes);
  const conversations = createTableBuffer("conversations", CONVERSATION_COLUMNS, initialBytes);

  function encodeHandoffs(record: ConversationRecord): void {
    const { row } = handoffs;
    for (const entry of record.handoffs) {
      row.string(record.clientId);
      row.uint64(record.dateCreated);
      row.string(record.id);
      row.string(entry.target);
      row.uint8(entry.targetKind === "handoff_id" ? 1 : 2);
      writeVersion(row, record.version);
      row.uint64(entry.dateCreated);
      row.uint64(0);
      handoffs.uploadedAt();
      row.uint64(entry.dateCreated);
      row.string(entry.name ?? "");
      row.string(entry.outcomeStatus ?? "");
      row.nullableString(entry.reasonCode);
      row.string(entry.entry);
      handoffs.endRow();
    }
  }

  function encodeConversation(record: ConversationRecord): { textStart: number; stampStart: number } {
    const { row } = conversations;
    const { columns } = record;
    startRow(conversations, record);
    row.uint64(record.dateUpdated);
    row.string(columns.chatterId);
    row.string(columns.endUserId);
    row.string(columns.language);
    row.string(columns.platform);
    row.string(columns.device);
    row.string(columns.browser);
    row.string(columns.resolution);
    row.string(columns.topicLabel);
    row.string(columns.lastAgentId);
    row.nullableUint8(columns.isEngaged);
    row.nullableUint8(columns.isEscalated);
    row.nullableUint8(columns.isTestUser);
    row.nullableFloat64(columns.agentHandleTime);
    row.nullableFloat64(columns.botHandleTime);
    row.nullableFloat64(columns.csatScore);
    const textStart = row.length;
    const stampStart = row.stringWithHole(record.beforeUpload, STAMP_LENGTH, record.afterUpload);
    conversations.stampAt(stampStart);
    row.string(record.tail);
    conversations.endRow();
    return { textStart, stampStart };
  }

  function encodeUpdate(record: ConversationRecord, textStart: number, stampStart: number): void {
    const { row } = updates;
    row.string(record.clientId);
    row.uint64(record.dateUpdated);
    row.string(record.id);
    writeVersion(row, record.version);
    row.uint64(record.dateCreated);
    updates.uploadedAt();
    const at = row.copyFrom(conversations.row, textStart, conversations.row.length);
    updates.stampAt(at + stampStart - textStart);
    updates.endRow();
  }

  return {
    tables: [handoffs, updates, conversations],
    encode(record) {
      if (record.type !== "conversation.exported") throw new TypeError("not a conversation");
      encodeHandoffs(record);
      const { textStart, stampStart } = encodeConversation(record);
      encodeUpdate(record, textStart, stampStart);
    },
  };
}

function messageEncoder(initialBytes: number): Encoder {
  const messages = createTableBuffer("messages", MESSAGE_COLUMNS, initialBytes);
  function encodeMessage(record: MessageRecord): void {
    const { row } = messages;
    const { columns } = record;
    startRow(messages, record);
    row.string(record.conversationId);
    row.string(columns.chatterId);
    row.string(columns.sender);
    row.string(columns.recipient);
    row.string(columns.messageType);
    row.string(columns.answerId);
    row.string(columns.inResponseTo);
    row.nullableUint8(columns.linkWasClicked);
    // An unusual rating leaves in the record as it came; the column holds what fits.
    const { review } = columns;
    row.nullableUint8(review !== null && review >= 0 && review <= 255 ? review : null);
    messages.stampAt(row.stringWithHole(record.beforeUpload, STAMP_LENGTH, record.afterUpload));
    messages.endRow();
  }
  return {
    tables: [messages],
    encode(record) {
      if (record.type !== "message.exported") throw new TypeError("not a message");
      encodeMessage(record);
    },
  };
}

function endUserEncoder(initialBytes: number): Encoder {
  const endUsers = createTableBuffer("end_users", END_USER_COLUMNS, initialBytes);
  function encodeEndUser(record: EndUserRecord): void {
    const { row } = endUsers;
    row.string(record.clientId);
    row.string(record.id);
    writeVersion(row, record.version);
    row.uint64(record.version.exportedAt);
    endUsers.uploadedAt();
    row.uint64(record.dateCreated);
    row.uint64(record.dateUpdated);
    row.string(record.email);
    row.varUint(record.externalIds.length);
    for (const id of record.externalIds) row.string(id);
    row.string(record.record);
    endUsers.endRow();
  }
  return {
    tables: [endUsers],
    encode(record) {
      if (record.type !== "end_user.exported") throw new TypeError("not an end user");
      encodeEndUser(record);
    },
  };
}

const ENCODERS: Readonly<Record<EventType, (initialBytes: number) => Encoder>> = {
  "conversation.exported": conversationEncoder,
  "message.exported": messageEncoder,
  "end_user.exported": endUserEncoder,
};

/**
 * Starts an empty batch. `initialBytes` is what it sets aside at once for its largest table. With `landingDays` every
 * event is kept as it came for so many days, by the first of the INSERTs.
 */
export function createBatch(
  type: EventType,
  initialBytes = 1 << 20,
  options: { readonly landingDays?: number | undefined } = {},
): Batch {
  const { tables: ownTables, encode } = ENCODERS[type](initialBytes);
  const { landingDays } = options;
  const landing = landingDays === undefined ? null : createLandingRows(landingDays, initialBytes);
  const tables = landing === null ? ownTables : [landing.table, ...ownTables];
  // rowsBefore[t][i]: rows of table t before record i.
  const rowsBefore: number[][] = tables.map(() => [0]);
  const createdMonths = new Set<number>();
  const updatedMonths = new Set<number>();
  let records = 0;
  return {
    type,
    add(record, event) {
      encode(record);
      if (landing !== null) {
        if (event === undefined) throw new TypeError("a batch with landing needs the event");
        landing.add(record, event);
      }
      records += 1;
      for (let t = 0; t < tables.length; t += 1) rowsBefore[t]?.push(tables[t]?.rows() ?? 0);
      createdMonths.add(monthOf(record.dateCreated));
      if (record.type === "conversation.exported") updatedMonths.add(monthOf(record.dateUpdated));
    },
    records: () => records,
    rows: () => tables.reduce((sum, table) => sum + table.rows(), 0),
    bytes: () => tables.reduce((sum, table) => sum + table.row.length, 0),
    clear() {
      landing?.clear();
      for (const table of ownTables) table.clear();
      for (const before of rowsBefore) before.length = 1;
      createdMonths.clear();
      updatedMonths.clear();
      records = 0;
    },
    capacity: () => tables.reduce((sum, table) => sum + table.row.capacity, 0),
    spansTooManyPartitions: () =>
      createdMonths.size >= MAX_PARTITIONS || updatedMonths.size >= MAX_PARTITIONS,
    fillUpload(instant) {
      landing?.fillUpload(instant);
      for (const table of ownTables) table.fillUpload(instant);
    },
    inserts(from, to) {
      const inserts: TableInsert[] = [];
      for (const [t, table] of tables.entries()) {
        const first = rowsBefore[t]?.[from] ?? 0;
        const end = rowsBefore[t]?.[to] ?? table.rows();
        if (end === first) continue;
        inserts.push({
          table: table.table,
          columns: table.columns,
          rows: end - first,
          body: table.row.view(table.startOf(first), table.startOf(end)),
        });
      }
      return inserts;
    },
  };
}
