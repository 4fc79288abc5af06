/**
 * The SQL of pages of conversations by date_updated. The update index names candidates: every conversation that
 * ever had a date of update in the range. Their live rows decide which of them are given out, and where: a
 * conversation that is exported again between both reads is shown at its new date, or by a later page.
 */
import { CONVERSATION, handoffsOf, withHandoffs } from "./conversation-sql.ts";
import { isShown } from "./hidden-sql.ts";
import { type Candidates, isNotStale, onceOnly } from "./identity-sql.ts";
import { inRange, type LineShape, type RangedList } from "./line-sql.ts";
import { pageOf, type PageShape, rangeOf, type RangeShape, type RowOrder, windowOf } from "./page-sql.ts";

/** The order of the update index. */
export const updateOrder = (shape: RangeShape): RowOrder => ({
  table: "conversation_updates",
  window: windowOf("date_updated", "conversation_id", shape),
  date: "date_updated",
  id: "conversation_id",
  columns: "client_id, date_updated",
});

/** Conversations with an entry in the range. */
export const updateCandidates = (shape: RangeShape): Candidates => ({
  kind: "conversation",
  id: "conversation_id",
  table: "conversation_updates",
  range: rangeOf("date_updated", "conversation_id", shape),
  dates: "true",
});

const ofCandidates = (column: string, { range }: Candidates): string =>
  `(SELECT ${column} FROM conversation_updates WHERE ${range})`;

/** SELECT of columns of the first `most` live rows of candidates. */
// PREWHERE has conditions on key columns only: they keep all versions of a conversation, so that FINAL can merge
// them. The date alone goes first: it spares reading the ids of neighbours. With a LIMIT behind the order ClickHouse
// reads the texts of these rows alone, and last: see `TEXTS_LAST`.
function liveOnes(
  columns: string,
  all: Candidates,
  { severalDates, hiding }: Omit<LineShape, "spread">,
  most: string,
): string {
  const dates = `date_created IN ${ofCandidates("date_created", all)}`;
  const where = `client_id = {client:String} AND ${dates}`;
  return `SELECT * FROM (SELECT ${columns} FROM conversations FINAL
      PREWHERE ${dates} AND cityHash64(date_created, conversation_id) IN ${ofCandidates("cityHash64(date_created, conversation_id)", all)}
      WHERE ${all.range} AND ${isNotStale(all, severalDates)} AND ${isShown("conversation", hiding, { table: "conversations", where })}
      ORDER BY date_updated, conversation_id LIMIT ${most}) ${onceOnly(all)}`;
}

/** SELECT of the first `most` live conversations of candidates, in no order: `d`, `id` and `record`. */
function conversationsOf(all: Candidates, shape: LineShape, most: string): string {
  const records = liveOnes("date_updated, date_created, conversation_id, head, tail", all, shape, most);
  const dates = `conversation_date_created IN ${ofCandidates("date_created", all)}`;
  const handoffs = handoffsOf(dates, shape.severalDates ? all : null);
  return `SELECT r.date_updated AS d, r.conversation_id AS id, ${CONVERSATION} AS record
    FROM ${withHandoffs(records, handoffs, shape)}`;
}

/** Conversations by date_updated. */
export function conversationsByUpdate(shape: PageShape): string {
  const all = updateCandidates(shape);
  const looked = `(SELECT count() FROM conversation_updates WHERE ${all.range})`;
  // More than a page, so that the next one looks at fewer entries.
  const records = conversationsOf(all, shape, "2 * {reach:UInt32}");
  return pageOf(records, shape.wholeTies, `intDiv(${looked} * on_page, greatest(total, 1))`);
}

const RANGE = `client_id = {client:String} AND ${inRange("date_updated")}`;
const CANDIDATES: Candidates = { ...updateCandidates({ positioned: false }), range: RANGE };
const ANY_NUMBER = String(2 ** 32 - 1);

/** All conversations of a range of date_updated. */
export const CONVERSATIONS_BY_UPDATE: RangedList = {
  rows: {
    table: "conversation_updates",
    range: RANGE,
    date: "date_updated",
    columns: "client_id, date_updated",
  },
  candidates: CANDIDATES,
  records: (shape) => `SELECT record FROM (${conversationsOf(CANDIDATES, shape, ANY_NUMBER)}) ORDER BY d, id`,
};
