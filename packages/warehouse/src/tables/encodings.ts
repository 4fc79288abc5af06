import type { ExportRecord, RecordTable } from "@conversation-export/domain";
import { CHANGE_COLUMNS, CHANGES, encodeChange } from "./changes.ts";
import { encodeUpdate, UPDATE_COLUMNS } from "./conversation-updates.ts";
import { CONVERSATION_COLUMNS, encodeConversation } from "./conversations.ts";
import { encodeEndUser, END_USER_COLUMNS } from "./end-users.ts";
import { encodeHandoffs, HANDOFF_COLUMNS } from "./handoffs.ts";
import { encodeMessage, MESSAGE_COLUMNS } from "./messages.ts";
import { encodeRecordDate, RECORD_DATE_COLUMNS, RECORD_DATES } from "./record-dates.ts";
import type { TableBuffer } from "./table-buffer.ts";

/** How the rows of a record are written to a table that has rows of its kind. */
export type Encoding = {
  readonly columns: readonly string[];
  encode(table: TableBuffer, record: ExportRecord): void;
};

export type EncodedTable = RecordTable | typeof RECORD_DATES | typeof CHANGES;

export const ENCODINGS: Readonly<Record<EncodedTable, Encoding>> = {
  [RECORD_DATES]: { columns: RECORD_DATE_COLUMNS, encode: encodeRecordDate },
  [CHANGES]: { columns: CHANGE_COLUMNS, encode: encodeChange },
  handoffs: { columns: HANDOFF_COLUMNS, encode: encodeHandoffs },
  conversation_updates: { columns: UPDATE_COLUMNS, encode: encodeUpdate },
  conversations: { columns: CONVERSATION_COLUMNS, encode: encodeConversation },
  messages: { columns: MESSAGE_COLUMNS, encode: encodeMessage },
  end_users: { columns: END_USER_COLUMNS, encode: encodeEndUser },
};
