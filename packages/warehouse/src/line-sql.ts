/**
 * The SQL of windows by creation that are read whole. A window is read in steps, each a range of dates that is known
 * before: no keys have to be collected, and nobody sorts or counts.
 *
 * Parameters: client, since, to (µs), for the end of a step rows (how many rows it may span).
 */
import { CONVERSATION, handoffsWhere, micros, type PageShape, withHandoffs } from "./page-sql.ts";

const range = (date: string): string => `${date} >= ${micros("since")} AND ${date} < ${micros("to")}`;

/** The date of the row behind so many others, of all versions; no row when there are fewer. */
export function stepEnd(table: "conversations" | "messages"): string {
  return `SELECT toUnixTimestamp64Micro(date_created) FROM ${table}
    WHERE client_id = {client:String} AND ${range("date_created")}
    ORDER BY client_id, date_created LIMIT 1 OFFSET {rows:UInt32}`;
}

export function conversationLines({ spread }: Pick<PageShape, "spread">): string {
  const records = `SELECT date_created, conversation_id, head, tail FROM conversations FINAL
      WHERE client_id = {client:String} AND ${range("date_created")}`;
  const handoffs = handoffsWhere(range("conversation_date_created"));
  return `SELECT ${CONVERSATION} FROM ${withHandoffs(records, handoffs, "r.date_created", spread)}
    FORMAT CustomSeparated`;
}

export function messageLines(): string {
  return `SELECT record FROM messages FINAL WHERE client_id = {client:String} AND ${range("date_created")}
    ORDER BY client_id, date_created, message_id FORMAT CustomSeparated`;
}
