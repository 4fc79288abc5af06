/**
 * The SQL of pages of the messages of one conversation, by date_created. Candidates are the messages in the
 * range with any row that names the conversation, in the order of the projection. Further parameter:
 * `conversation`.
 */
import { keysOfPage, outputOfFound, pageOfFound } from "./found-sql.ts";
import { isShown } from "./hidden-sql.ts";
import { type Candidates, isNotStale, onceOnly } from "./identity-sql.ts";
import { inRange, type LineShape, type RangedList } from "./line-sql.ts";
import { datesOf, type PageShape, rangeOf, type RangeShape, type RowOrder, windowOf } from "./page-sql.ts";

const OF_CONVERSATION = "conversation_id = {conversation:String}";

/** The order of the projection. */
export const conversationMessageOrder = (shape: RangeShape): RowOrder => ({
  table: "messages",
  window: `${windowOf("date_created", "message_id", shape)} AND ${OF_CONVERSATION}`,
  date: "date_created",
  id: "message_id",
  columns: "client_id, conversation_id, date_created, message_id",
});

/** Messages with any row that names the conversation. */
export const conversationMessageCandidates = (shape: RangeShape): Candidates => ({
  kind: "message",
  id: "message_id",
  table: "messages",
  range: `${rangeOf("date_created", "message_id", shape)} AND ${OF_CONVERSATION}`,
  dates: datesOf("date_created", shape),
});

// Compares keys by hash: ClickHouse would analyse ten thousand tuples against the index, and the range beside
// it prunes as well. 64 bits are enough: a collision could only add a record that arrived meanwhile.
const IN_PAGE = `cityHash64(date_created, message_id) IN (${keysOfPage("cityHash64(k.1, k.2)")})`;

// The dates of the candidates prune as well as the index of conversations. To FINAL, ClickHouse 25.8 adds every
// granule between two that an index leaves, which with one late correction is the whole window.
const BY_DATES = "SETTINGS use_skip_indexes_if_final = 0";

/** SELECT of columns of the live messages among the candidates, in order. */
// PREWHERE has conditions on key columns only: they keep all versions of a message, so that FINAL can merge
// them.
function liveOnes(
  columns: string,
  all: Candidates,
  { severalDates, hiding }: Omit<LineShape, "spread">,
  limit = "",
): string {
  const { range } = all;
  const candidates = (column: string): string => `(SELECT ${column} FROM messages WHERE ${range})`;
  return `SELECT ${columns} FROM messages FINAL
        PREWHERE date_created IN ${candidates("date_created")}
          AND cityHash64(date_created, message_id) IN ${candidates("cityHash64(date_created, message_id)")}
        WHERE ${range} AND ${isNotStale(all, severalDates)} AND ${isShown("message", hiding, { table: "messages", where: range })}
        ORDER BY client_id, date_created, message_id ${onceOnly(all)} ${limit} ${BY_DATES}`;
}

/**
 * Messages of one conversation. Versions of a message may name different conversations, so FINAL decides
 * which are live; a projection cannot do that.
 */
export function messagesOfConversation(shape: PageShape): string {
  const all = conversationMessageCandidates(shape);
  const { range } = all;
  // Of equal versions the later insert wins; `uploaded_at` distinguishes them.
  const found = `messages
      WHERE ${range} AND date_created <= page.2
        AND sipHash128(date_created, message_id, version, uploaded_at)
          IN (${keysOfPage("sipHash128(k.1, k.2, k.3, k.4)")})
      ORDER BY client_id, conversation_id, date_created, message_id LIMIT 1 BY date_created, message_id`;
  // Without a snapshot, a found row may be merged into a newer one before this part of the query reads it.
  const latest = `messages FINAL
      PREWHERE date_created IN (${keysOfPage("k.1")}) AND ${IN_PAGE}
      WHERE ${range} AND date_created <= page.2 ORDER BY client_id, date_created, message_id ${BY_DATES}`;
  return `WITH
    (SELECT arraySort(groupArray((d, id, v, u))) FROM
      (${liveOnes("date_created AS d, message_id AS id, version AS v, uploaded_at AS u", all, shape, "LIMIT {reach:UInt32}")})) AS found,
    ${pageOfFound(shape.wholeTies)}
    ${outputOfFound("record", shape.spread ? latest : found)}`;
}

const RANGE = `client_id = {client:String} AND ${inRange("date_created")} AND ${OF_CONVERSATION}`;
const CANDIDATES: Candidates = {
  ...conversationMessageCandidates({ positioned: false }),
  range: RANGE,
  dates: inRange("date_created"),
};

/** All messages of one conversation in a range of date_created. */
export const MESSAGES_OF_CONVERSATION: RangedList = {
  rows: {
    table: "messages",
    range: RANGE,
    date: "date_created",
    columns: "client_id, conversation_id, date_created, message_id",
  },
  candidates: CANDIDATES,
  records: (shape) => liveOnes("record", CANDIDATES, shape),
};
