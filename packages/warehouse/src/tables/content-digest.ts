import { hash } from "node:crypto";
import type { RecordTable, RightRow } from "@conversation-export/domain";
import { updateContent } from "./conversation-updates.ts";
import { conversationContent } from "./conversations.ts";
import { endUserContent } from "./end-users.ts";
import { handoffContent } from "./handoffs.ts";
import { messageContent } from "./messages.ts";
import { prefixed, prefixedSql, type RowContent } from "./row-content.ts";

const CONTENT: Readonly<Record<RecordTable, RowContent>> = {
  conversations: conversationContent,
  conversation_updates: updateContent,
  handoffs: handoffContent,
  messages: messageContent,
  end_users: endUserContent,
};

const DIGEST_LENGTH = 32;

/**
 * SQL for the digest of a row's content: all but its key, version and upload instant. Equals `contentDigest`.
 */
export const contentDigestSql = (table: RecordTable): string => {
  const texts = CONTENT[table].sql.map((sql) => `ifNull(${prefixedSql(`(${sql})`)}, '-')`);
  return `lower(hex(substring(SHA256(concat(${texts.join(", ")})), 1, ${DIGEST_LENGTH / 2})))`;
};

/** Digest of the content of a right row, 32 hexadecimal digits. */
export const contentDigest = (row: RightRow): string => {
  let all = "";
  for (const text of CONTENT[row.table].texts(row)) all += text === null ? "-" : prefixed(text);
  return hash("sha256", all, "hex").slice(0, DIGEST_LENGTH);
};
