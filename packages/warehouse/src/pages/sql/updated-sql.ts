/**
 * The SQL of pages of conversations by date_updated. Candidates are the rows of the update index in the
 * range, superseded ones included.
 */
import { CONVERSATION, handoffsOf, withHandoffs } from "./conversation-sql.ts";
import { keysOfPage, outputOfFound, pageOfFound } from "./found-sql.ts";
import { isHidden } from "./hidden-sql.ts";
import { type Candidates, onceOnly, severalDates } from "./identity-sql.ts";
import { inRange, type RangedList } from "./line-sql.ts";
import { type PageShape, rangeOf, type RangeShape, type RowOrder, windowOf } from "./page-sql.ts";

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

/** Conversations by date_updated. A candidate is live when its version is the latest in `conversations`. */
export function conversationsByUpdate(shape: PageShape): string {
  const { positioned, wholeTies, spread } = shape;
  const candidates = updateCandidates(shape);
  const several = shape.severalDates ? candidates : null;
  const records = `${CONVERSATIONS_FIRST} SELECT ${COLUMNS} FROM conversation_updates FINAL
      PREWHERE sipHash128(date_updated, conversation_id, version) IN (${keysOfPage("sipHash128(k.1, k.2, k.3)")})
      WHERE ${candidates.range} AND date_updated <= page.2`;
  const handoffs = handoffsOf(`conversation_date_created IN (${keysOfPage("k.4")})`, several);
  // Rows of the update index up to the end of the page.
  const needed = `(SELECT count() FROM conversation_updates
      WHERE ${windowOf("date_updated", "conversation_id", { positioned })} AND date_updated <= page.2)`;
  return `WITH
    latest AS (${latestVersions(candidates, shape)}),
    (SELECT arraySort(groupArray((d, id, v, c))) FROM
      (SELECT DISTINCT date_updated AS d, conversation_id AS id, version AS v, date_created AS c
        FROM conversation_updates
        WHERE ${candidates.range} AND sipHash128(date_created, conversation_id, version) IN latest
        ORDER BY d, id, c ${onceOnly({ id: "id" })} LIMIT {reach:UInt32})) AS found,
    ${pageOfFound(wholeTies)}
    ${outputOfFound(
      CONVERSATION,
      `${withHandoffs(records, handoffs, { spread, severalDates: shape.severalDates })}
      ORDER BY r.date_updated, r.conversation_id`,
      needed,
    )}`;
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
    const records = `${CONVERSATIONS_FIRST} SELECT ${COLUMNS} FROM conversation_updates FINAL
      WHERE ${RANGE} AND sipHash128(date_created, conversation_id, version) IN (${latestVersions(CANDIDATES, shape)})
      ${onceOnly({ id: "conversation_id" })}`;
    const dates = `SELECT date_created FROM conversation_updates WHERE ${RANGE}`;
    const handoffs = handoffsOf(
      `conversation_date_created IN (${dates})`,
      shape.severalDates ? CANDIDATES : null,
    );
    return `SELECT ${CONVERSATION} AS record FROM ${withHandoffs(records, handoffs, shape)}
      ORDER BY r.date_updated, r.conversation_id`;
  },
};
