/**
 * The SQL of pages of conversations by date_updated. Candidates are the rows of the update index in the
 * range, superseded ones included.
 */
import { CONVERSATION, handoffsOf, withHandoffs } from "./conversation-sql.ts";
import { isHidden } from "./hidden-sql.ts";
import { type Candidates, onceOnly, severalDates } from "./identity-sql.ts";
import { inRange, type RangedList } from "./line-sql.ts";
import { pageOf, type PageShape, rangeOf, type RangeShape, type RowOrder, windowOf } from "./page-sql.ts";

/** The order of the update index. */
export const updateOrder = (shape: RangeShape): RowOrder => ({
  table: "conversation_updates",
  window: windowOf("date_updated", "conversation_id", shape),
  date: "date_updated",
  id: "conversation_id",
  columns: "client_id, date_updated",
});

/** Conversations with candidates. */
export const updateCandidates = (shape: RangeShape): Candidates => ({
  kind: "conversation",
  id: "conversation_id",
  table: "conversation_updates",
  range: rangeOf("date_updated", "conversation_id", shape),
  dates: "true",
});

/**
 * SELECT of hashes of the live versions of the candidates. Hashes have 128 bits: a collision would show a
 * superseded record. `conversations` tells who they are about.
 */
function latestVersions(
  candidates: Candidates,
  { severalDates: several, hiding }: Pick<PageShape, "severalDates" | "hiding">,
): string {
  const shown = (hidden: string): string => (hiding ? `HAVING NOT ${hidden}` : "");
  const dates = `SELECT date_created FROM conversation_updates WHERE ${candidates.range}`;
  const ofDates = `client_id = {client:String} AND ${several ? `(date_created IN (${dates}) OR date_created IN ${severalDates(candidates)})` : `date_created IN (${dates})`}`;
  const hidden = isHidden("conversation", { table: "conversations", where: ofDates });
  if (!several) {
    return `SELECT sipHash128(date_created, conversation_id, max(version)) FROM conversations
      WHERE ${ofDates}
      GROUP BY client_id, date_created, conversation_id ${shown(`max(${hidden})`)}`;
  }
  return `SELECT sipHash128(live.1, conversation_id, live.2) FROM (
      SELECT conversation_id, argMax((date_created, version), (version, uploaded_at)) AS live FROM conversations
      WHERE ${ofDates}
      GROUP BY conversation_id ${shown(`argMax(${hidden}, (version, uploaded_at))`)})`;
}

const COLUMNS = "date_updated, date_created, conversation_id, head, tail";
// A query takes its snapshot of a table where it first names the table. The part without rows names
// `conversations` first. The update index is written before that table, so its later snapshot has all live
// versions.
const CONVERSATIONS_FIRST = `SELECT ${COLUMNS} FROM conversations WHERE false
      UNION ALL`;

/**
 * SELECT of columns of the candidates whose version is the latest in `conversations`, in the order of the index. FINAL
 * drops the same row written twice; these share the columns that PREWHERE asks for.
 */
const liveRows = (
  columns: string,
  candidates: Candidates,
  shape: Pick<PageShape, "severalDates" | "hiding">,
): string =>
  `SELECT ${columns} FROM conversation_updates FINAL
      PREWHERE sipHash128(date_created, conversation_id, version) IN (${latestVersions(candidates, shape)})
      WHERE ${candidates.range}
      ORDER BY client_id, date_updated, conversation_id`;

const handoffsOfRange = (candidates: Candidates, shape: Pick<PageShape, "severalDates">): string =>
  handoffsOf(
    `conversation_date_created IN (SELECT date_created FROM conversation_updates WHERE ${candidates.range})`,
    shape.severalDates ? candidates : null,
  );

// The share of the range's rows that the page takes; `rows` is how many there are.
const NEEDED = "intDiv({rows:UInt64} * on_page, total)";

/**
 * Conversations by date_updated. Texts are read of `most` records at most, whatever lies in the range; handoffs of
 * all of it, since to look for these records once more costs as much as to find them.
 */
export function conversationsByUpdate(shape: PageShape): string {
  const candidates = updateCandidates(shape);
  // LIMIT BY behind the limit: in front of it, ClickHouse reads all texts of the range.
  const records = `${CONVERSATIONS_FIRST} SELECT ${COLUMNS} FROM (${liveRows(COLUMNS, candidates, shape)} LIMIT {most:UInt32})
      ${onceOnly(candidates)}`;
  const joined = `SELECT r.date_updated AS d, r.conversation_id AS id, ${CONVERSATION} AS record
    FROM ${withHandoffs(records, handoffsOfRange(candidates, shape), shape)}`;
  return pageOf(joined, shape.wholeTies, NEEDED);
}

const RANGE = `client_id = {client:String} AND ${inRange("date_updated")}`;
const CANDIDATES: Candidates = { ...updateCandidates({ positioned: false }), range: RANGE };

/** All conversations of a range of date_updated. */
export const CONVERSATIONS_BY_UPDATE: RangedList = {
  rows: {
    table: "conversation_updates",
    range: RANGE,
    date: "date_updated",
    columns: "client_id, date_updated",
  },
  candidates: CANDIDATES,
  records: (shape) => {
    const records = `${CONVERSATIONS_FIRST} ${liveRows(COLUMNS, CANDIDATES, shape)} ${onceOnly(CANDIDATES)}`;
    return `SELECT ${CONVERSATION} AS record FROM ${withHandoffs(records, handoffsOfRange(CANDIDATES, shape), shape)}
      ORDER BY r.date_updated, r.conversation_id`;
  },
};
