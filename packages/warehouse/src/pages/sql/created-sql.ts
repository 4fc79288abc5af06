/** The SQL of pages by date_created. */
import { micros } from "../../session/micros-sql.ts";
import { CONVERSATION, createdCandidates, handoffsOf, withHandoffs } from "./conversation-sql.ts";
import { type Candidates, liveInOrder } from "./identity-sql.ts";
import {
  datesOf,
  pageOf,
  type PageShape,
  rangeOf,
  type RangeShape,
  type RowOrder,
  windowOf,
} from "./page-sql.ts";

/** The first live records of a range. */
const firstRecords = (columns: string, candidates: Candidates, shape: PageShape): string =>
  `${liveInOrder(columns, candidates, shape)} LIMIT {reach:UInt32}`;

/** The order of conversations by creation. */
export const conversationOrder = (shape: RangeShape): RowOrder => ({
  table: "conversations",
  window: windowOf("date_created", "conversation_id", shape),
  date: "date_created",
  id: "conversation_id",
  columns: "client_id, date_created",
});

/** Conversations that a page by creation looks at. */
export const conversationCandidates = (shape: RangeShape): Candidates =>
  createdCandidates(rangeOf("date_created", "conversation_id", shape), datesOf("date_created", shape));

/** Conversations by date_created. */
export function conversationsByCreation(shape: PageShape): string {
  const candidates = conversationCandidates(shape);
  const several = shape.severalDates ? candidates : null;
  const from = micros(shape.positioned ? "after_date" : "since");
  const records = firstRecords("date_created, conversation_id, head, tail", candidates, shape);
  const handoffs = handoffsOf(
    `conversation_date_created >= ${from} AND conversation_date_created <= ${micros("bound")}`,
    several,
  );
  const joined = `SELECT r.date_created AS d, r.conversation_id AS id, ${CONVERSATION} AS record
    FROM ${withHandoffs(records, handoffs, shape)}`;
  return pageOf(joined, shape.wholeTies);
}

/** The order of messages by creation. */
export const messageOrder = (shape: RangeShape): RowOrder => ({
  table: "messages",
  window: windowOf("date_created", "message_id", shape),
  date: "date_created",
  id: "message_id",
  columns: "client_id, date_created",
});

/** Messages that a page by creation looks at. */
export const messageCandidates = (shape: RangeShape): Candidates => ({
  kind: "message",
  id: "message_id",
  table: "messages",
  range: rangeOf("date_created", "message_id", shape),
  dates: datesOf("date_created", shape),
});

/** Messages by date_created. */
export function messagesByCreation(shape: PageShape): string {
  const records = firstRecords("date_created, message_id, record", messageCandidates(shape), shape);
  return pageOf(`SELECT date_created AS d, message_id AS id, record FROM (${records})`, shape.wholeTies);
}
