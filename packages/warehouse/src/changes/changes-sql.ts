/**
 * The SQL of pages of changes. Entries of `changes` name records in the order in which they were stored. An entry
 * is given out with the live version of its record, unless that version was uploaded later: then a later entry
 * gives it out. A record without a live version is given out as deleted when an entry says so.
 *
 * Parameters as for other pages; `to` is the settled instant.
 */
import type { RecordKind } from "@conversation-export/domain";
import { CONVERSATION, handoffsOf, withHandoffs } from "../pages/conversation-sql.ts";
import { keysOfPage, outputOfFound, pageOfFound } from "../pages/found-sql.ts";
import { type Candidates, severalDates } from "../pages/identity-sql.ts";
import { type PageShape, rangeOf, type RowOrder, windowOf } from "../pages/page-sql.ts";
import type { DatedKind } from "../tables/record-dates.ts";

const POSITIONED = { positioned: true } as const;

const ofKind = (kind: RecordKind, condition: string): string => `kind = '${kind}' AND ${condition}`;

/** The order of the entries of a kind. */
export const changeOrder = (kind: RecordKind): RowOrder => ({
  table: "changes",
  window: ofKind(kind, windowOf("stored_at", "id", POSITIONED)),
  date: "stored_at",
  id: "id",
  columns: "client_id, kind, stored_at",
});

const entriesOf = (kind: RecordKind): string => ofKind(kind, rangeOf("stored_at", "id", POSITIONED));

/** Records with an entry in the range. */
export const changeCandidates = (kind: DatedKind): Candidates => ({
  kind,
  id: "id",
  table: "changes",
  range: entriesOf(kind),
});

/** How the rows of a kind are found by their keys. */
type Keyed = {
  readonly table: string;
  readonly id: string;
  /** null: the key has no date. */
  readonly date: string | null;
};

const TABLES: Readonly<Record<RecordKind, Keyed>> = {
  conversation: { table: "conversations", id: "conversation_id", date: "date_created" },
  message: { table: "messages", id: "message_id", date: "date_created" },
  end_user: { table: "end_users", id: "end_user_id", date: null },
};

type ChangeShape = Pick<PageShape, "severalDates" | "spread">;

/**
 * SELECT of the live versions of the records with entries: `id`, `v` (version), `u` (instant of upload), `c` (date
 * in the key).
 */
function liveVersions(kind: RecordKind, several: boolean): string {
  const { table, id, date } = TABLES[kind];
  const entries = (columns: string): string => `(SELECT ${columns} FROM changes WHERE ${entriesOf(kind)})`;
  if (date === null) {
    return `SELECT ${id} AS id, version AS v, uploaded_at AS u, toDateTime64(0, 6, 'UTC') AS c FROM ${table} FINAL
        WHERE client_id = {client:String} AND ${id} IN ${entries("id")}`;
  }
  if (several) {
    const dates = `${date} IN ${entries("date_created")} OR ${date} IN ${severalDates(changeCandidates(kind as DatedKind))}`;
    return `SELECT id, live.1 AS v, live.2 AS u, live.3 AS c FROM (
        SELECT ${id} AS id, argMax((version, uploaded_at, ${date}), (version, uploaded_at)) AS live FROM ${table}
        WHERE client_id = {client:String} AND (${dates}) AND ${id} IN ${entries("id")} GROUP BY ${id})`;
  }
  return `SELECT ${id} AS id, version AS v, uploaded_at AS u, ${date} AS c FROM ${table} FINAL
        PREWHERE ${date} IN ${entries("date_created")}
          AND cityHash64(${date}, ${id}) IN ${entries("cityHash64(date_created, id)")}
        WHERE client_id = {client:String} LIMIT 1 BY ${id}`;
}

/** SELECT of columns of the live rows of the page; keys of `found` are (s, id, v, u, c, gone). */
function rowsOfPage(kind: RecordKind, columns: string, { spread }: ChangeShape): string {
  const { table, id, date } = TABLES[kind];
  const where = `client_id = {client:String}${date === null ? ` AND ${id} IN (${keysOfPage("k.2")})` : ""}`;
  const byDate = date === null ? "" : `${date} IN (${keysOfPage("k.5")}) AND `;
  const key = date === null ? id : `${date}, ${id}`;
  const keyOfPage = date === null ? "k.2" : "k.5, k.2";
  // Without a snapshot, a found row may be merged into a newer one before this part of the query reads it.
  return spread
    ? `SELECT ${columns} FROM ${table} FINAL
        PREWHERE ${byDate}cityHash64(${key}) IN (${keysOfPage(`cityHash64(${keyOfPage})`)})
        WHERE ${where}`
    : `SELECT ${columns} FROM ${table}
        PREWHERE ${byDate}sipHash128(${key}, version, uploaded_at) IN (${keysOfPage(`sipHash128(${keyOfPage}, k.3, k.4)`)})
        WHERE ${where} LIMIT 1 BY ${id}`;
}

/** SELECT of the live records of the page: `id`, `record`. */
function recordsOfPage(kind: RecordKind, shape: ChangeShape): string {
  if (kind !== "conversation") {
    return rowsOfPage(kind, `${TABLES[kind].id} AS id, record`, shape);
  }
  const rows = rowsOfPage(kind, "date_created, conversation_id, head, tail", shape);
  const several = shape.severalDates ? changeCandidates(kind) : null;
  const handoffs = handoffsOf(`conversation_date_created IN (${keysOfPage("k.5")})`, several);
  return `SELECT r.conversation_id AS id, ${CONVERSATION} AS record FROM ${withHandoffs(rows, handoffs, shape)}`;
}

/** A record that is gone, under the name that its id has in records of its kind. */
const deletedOf = (
  kind: RecordKind,
): string => `concat('{"${kind === "end_user" ? "end_user_id" : "_id"}":', toJSONString(k.2), ',"deleted":true,"deleted_at":"',
      formatDateTime(if(k.6 > k.1, k.6, k.1), '%Y-%m-%dT%H:%i:%S.%f', 'UTC'), '+00:00"}')`;

/** A page of changes of one kind. */
export function changesOf(kind: RecordKind, shape: ChangeShape): string {
  const entries = `SELECT id, max(stored_at) AS s, maxIf(stored_at, deleted) AS gone FROM changes
      WHERE ${entriesOf(kind)} GROUP BY id`;
  const needed = `(SELECT count() FROM changes
      WHERE ${ofKind(kind, windowOf("stored_at", "id", POSITIONED))} AND stored_at <= page.2)`;
  return `WITH
    (SELECT arraySort(groupArray((s, id, v, u, c, gone))) FROM (
      SELECT e.s AS s, e.id AS id, l.v AS v, l.u AS u, l.c AS c, if(l.v = 0, e.gone, toDateTime64(0, 6, 'UTC')) AS gone
      FROM (${entries}) AS e LEFT JOIN (${liveVersions(kind, shape.severalDates)}) AS l ON l.id = e.id
      WHERE if(l.v = 0, e.gone > toDateTime64(0, 6, 'UTC'), e.s >= l.u)
      ORDER BY s, id LIMIT {reach:UInt32})) AS found,
    ${pageOfFound(false)}
    ${outputOfFound(
      `if(empty(r.record), ${deletedOf(kind)}, r.record)`,
      `(${keysOfPage("k")}) AS keys LEFT JOIN (${recordsOfPage(kind, shape)}) AS r ON r.id = keys.k.2
      ORDER BY keys.k.1, keys.k.2`,
      needed,
    )}`;
}
