import { type EventType, type ExportRecord, RECORD_KINDS } from "@conversation-export/domain";
import { CHANGE_COLUMNS, CHANGES, encodeChange } from "../tables/changes.ts";
import { encodeUpdate, UPDATE_COLUMNS } from "../tables/conversation-updates.ts";
import { CONVERSATION_COLUMNS, encodeConversation } from "../tables/conversations.ts";
import { encodeEndUser, END_USER_COLUMNS } from "../tables/end-users.ts";
import { encodeHandoffs, HANDOFF_COLUMNS } from "../tables/handoffs.ts";
import { encodeMessage, MESSAGE_COLUMNS } from "../tables/messages.ts";
import { encodeRecordDate, RECORD_DATE_COLUMNS, RECORD_DATES } from "../tables/record-dates.ts";
import { createTableBuffer, type TableBuffer } from "../tables/table-buffer.ts";

/** Encodes records of one kind to rows of its tables. */
export type RecordEncoder = {
  /**
   * In the order of insertion. Dates and changes are first: no row of a record may be there without them. The
   * record's own table is last, because its row makes the version live.
   */
  readonly tables: readonly TableBuffer[];
  /** @throws TypeError for a record of another kind */
  encode(record: ExportRecord): void;
};

const createDates = (initialBytes: number): TableBuffer =>
  createTableBuffer(RECORD_DATES, RECORD_DATE_COLUMNS, initialBytes >> 3);

const createChanges = (initialBytes: number): TableBuffer =>
  createTableBuffer(CHANGES, CHANGE_COLUMNS, initialBytes >> 3);

const conversationEncoder = (initialBytes: number): RecordEncoder => {
  const dates = createDates(initialBytes);
  const changes = createChanges(initialBytes);
  const handoffs = createTableBuffer("handoffs", HANDOFF_COLUMNS, initialBytes >> 3);
  const updates = createTableBuffer("conversation_updates", UPDATE_COLUMNS, initialBytes >> 3);
  const conversations = createTableBuffer("conversations", CONVERSATION_COLUMNS, initialBytes);
  return {
    tables: [dates, changes, handoffs, updates, conversations],
    encode(record) {
      if (record.type !== RECORD_KINDS.conversation.type) throw new TypeError("not a conversation");
      encodeRecordDate(dates, record);
      encodeChange(changes, "conversation", record);
      encodeHandoffs(handoffs, record);
      encodeUpdate(updates, record);
      encodeConversation(conversations, record);
    },
  };
};

const messageEncoder = (initialBytes: number): RecordEncoder => {
  const dates = createDates(initialBytes);
  const changes = createChanges(initialBytes);
  const messages = createTableBuffer("messages", MESSAGE_COLUMNS, initialBytes);
  return {
    tables: [dates, changes, messages],
    encode(record) {
      if (record.type !== RECORD_KINDS.message.type) throw new TypeError("not a message");
      encodeRecordDate(dates, record);
      encodeChange(changes, "message", record);
      encodeMessage(messages, record);
    },
  };
};

const endUserEncoder = (initialBytes: number): RecordEncoder => {
  const changes = createChanges(initialBytes);
  const endUsers = createTableBuffer("end_users", END_USER_COLUMNS, initialBytes);
  return {
    tables: [changes, endUsers],
    encode(record) {
      if (record.type !== RECORD_KINDS.end_user.type) throw new TypeError("not an end user");
      encodeChange(changes, "end_user", record);
      encodeEndUser(endUsers, record);
    },
  };
};

const ENCODERS: Readonly<Record<EventType, (initialBytes: number) => RecordEncoder>> = {
  [RECORD_KINDS.conversation.type]: conversationEncoder,
  [RECORD_KINDS.message.type]: messageEncoder,
  [RECORD_KINDS.end_user.type]: endUserEncoder,
};

/** @param initialBytes bytes allocated at first for the largest table */
export const createEncoder = (type: EventType, initialBytes: number): RecordEncoder =>
  ENCODERS[type](initialBytes);
