import { hash } from "node:crypto";
import type {
  ConversationRecord,
  EndUserRecord,
  MessageRecord,
  RecordTable,
  RightRow,
} from "@conversation-export/domain";
import { encodeUpdate, UPDATE_COLUMNS } from "./conversation-updates.ts";
import { CONVERSATION_COLUMNS, encodeConversation } from "./conversations.ts";
import { encodeEndUser, END_USER_COLUMNS } from "./end-users.ts";
import { encodeHandoffs, HANDOFF_COLUMNS } from "./handoffs.ts";
import { encodeMessage, MESSAGE_COLUMNS } from "./messages.ts";
import { createTableBuffer, STAMP_LENGTH, type TableBuffer } from "./table-buffer.ts";

const LABEL = '"record_last_updated":"';

/** SQL for a JSON text with blanks for the upload instant, which it repeats from the column `uploaded_at`. */
const withoutUpload = (column: string): string =>
  `replaceOne(${column}, concat('${LABEL}', replaceOne(toString(uploaded_at), ' ', 'T'), '+00:00"'), '${LABEL}${" ".repeat(STAMP_LENGTH)}"')`;

type Encoding = {
  /** SQL of the columns as the encoder writes them while no upload is filled in. */
  readonly sql: string;
  readonly buffer: TableBuffer;
  encode(table: TableBuffer, row: RightRow): void;
};

/** @param withUpload the column whose text repeats the upload instant */
const encoding = (
  columns: readonly string[],
  withUpload: string | null,
  encode: Encoding["encode"],
): Encoding => ({
  sql: columns
    .map((column) => {
      if (column === "uploaded_at") return "toDateTime64(0, 6, 'UTC')";
      return column === withUpload ? withoutUpload(column) : column;
    })
    .join(", "),
  buffer: createTableBuffer("", columns, 1 << 12),
  encode,
});

const ENCODINGS: Readonly<Record<RecordTable, Encoding>> = {
  conversations: encoding(CONVERSATION_COLUMNS, "head", (table, { record }) =>
    encodeConversation(table, record as ConversationRecord),
  ),
  conversation_updates: encoding(UPDATE_COLUMNS, null, (table, { record }) =>
    encodeUpdate(table, record as ConversationRecord),
  ),
  handoffs: encoding(HANDOFF_COLUMNS, null, (table, { record, entry }) =>
    encodeHandoffs(table, { ...(record as ConversationRecord), handoffs: entry === null ? [] : [entry] }),
  ),
  messages: encoding(MESSAGE_COLUMNS, "record", (table, { record }) =>
    encodeMessage(table, record as MessageRecord),
  ),
  end_users: encoding(END_USER_COLUMNS, null, (table, { record }) =>
    encodeEndUser(table, record as EndUserRecord),
  ),
};

const DIGEST_LENGTH = 32;

/** SQL for the digest of a stored row: all but its upload instant, as ClickHouse writes it. Equals `rowDigest`. */
export const rowDigestSql = (table: RecordTable): string =>
  `lower(hex(substring(SHA256(formatRow('RowBinary', ${ENCODINGS[table].sql})), 1, ${DIGEST_LENGTH / 2})))`;

/** Digest of a right row, all but its upload instant, as it is sent; 32 hexadecimal digits. */
export const rowDigest = (row: RightRow): string => {
  const { buffer, encode } = ENCODINGS[row.table];
  buffer.clear();
  encode(buffer, row);
  return hash("sha256", buffer.row.view(0, buffer.row.length), "hex").slice(0, DIGEST_LENGTH);
};
