/**
 * An entry gives the live version unless a later stable one does. Texts are read at once: ClickHouse plans each
 * subquery anew.
 */
import {
  DATED_KINDS,
  type DatedKind,
  ownTableOf,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import { micros } from "../session/micros-sql.ts";
import { CONVERSATION, handoffsOf, withHandoffs } from "../pages/sql/conversation-sql.ts";
import { isShown } from "../pages/sql/erased-sql.ts";
import { type Candidates, type Conditions, onceOnly, datesOfMoved } from "../pages/sql/identity-sql.ts";
import {
  FIRST_ROWS,
  pageRows,
  type RangedRows,
  rangeOf,
  type ReadShape,
  RECORD_COLUMN,
} from "../pages/sql/page-sql.ts";

/** Entries of a batch lie less than this after its stamp. */
const PLACES = "INTERVAL 1 SECOND";

const entriesOf = (kind: RecordKind): string => `kind = '${kind}' AND ${rangeOf("stored_at", "id")}`;

export const changeRows = (kind: RecordKind): RangedRows => ({
  table: "changes",
  range: entriesOf(kind),
  date: "stored_at",
  id: "id",
  columns: "client_id, kind, stored_at, id",
  key: "i",
});

const changeCandidates = (kind: DatedKind): Candidates => ({
  kind,
  id: "id",
  table: "changes",
  range: entriesOf(kind),
  dates: "true",
});

export const changeCandidatesOf = (kind: RecordKind): Candidates | null => {
  const dated = DATED_KINDS.find((one) => one === kind);
  return dated === undefined ? null : changeCandidates(dated);
};

const ofEntries = (kind: RecordKind, column: string): string =>
  `(SELECT ${column} FROM changes WHERE ${entriesOf(kind)})`;

/** Without rows pending deletion, until the deletion is published. */
function liveRows(kind: RecordKind, columns: string, { hasMoved, hasErased }: Conditions): string {
  const { name: table, id, keyDate: date } = ownTableOf(kind);
  const ids = `client_id = {client:String} AND ${id} IN ${ofEntries(kind, "id")}`;
  const shown = (where: string): string => isShown(kind, hasErased, { table, where });
  if (date === null) return `SELECT ${columns} FROM ${table} FINAL WHERE ${ids} AND ${shown(ids)}`;
  const dates = `${date} IN ${ofEntries(kind, "date_created")}`;
  if (hasMoved) {
    const known = `${dates} OR ${date} IN ${datesOfMoved(changeCandidates(kind as DatedKind))}`;
    return `SELECT ${columns} FROM ${table} FINAL
      WHERE client_id = {client:String} AND (${date}, ${id}) IN (
        SELECT argMax(${date}, (version, uploaded_at)), ${id} FROM ${table} WHERE ${ids} AND (${known}) GROUP BY ${id}) AND ${shown(`${ids} AND (${known})`)}
      ${onceOnly({ id })}`;
  }
  // The date first spares reading the ids of neighbours.
  const keys = `${dates} AND cityHash64(${date}, ${id}) IN ${ofEntries(kind, "cityHash64(date_created, id)")}`;
  return `SELECT ${columns} FROM ${table} FINAL PREWHERE ${keys}
    WHERE client_id = {client:String} AND ${shown(`client_id = {client:String} AND ${keys}`)} ${onceOnly({ id })}`;
}

/** `u`: instant of upload. */
function liveRecords(kind: RecordKind, shape: ReadShape): string {
  const [text] = RECORD_KINDS[kind].texts;
  if (text === "record") {
    return liveRows(kind, `${ownTableOf(kind).id} AS id, uploaded_at AS u, record`, shape);
  }
  const rows = liveRows(kind, "date_created, conversation_id, uploaded_at, head, tail", shape);
  const moved = shape.hasMoved ? changeCandidatesOf(kind) : null;
  const handoffs = handoffsOf(`conversation_date_created IN ${ofEntries(kind, "date_created")}`, moved);
  return `SELECT r.conversation_id AS id, r.uploaded_at AS u, ${CONVERSATION} AS record FROM ${withHandoffs(rows, handoffs, shape)}`;
}

/** ClickHouse itself escapes the other line ends of Unicode. */
const ID = String.raw`replaceAll(toJSONString(e.id), '\xC2\x85', '\\u0085')`;

const deletedOf = (
  kind: RecordKind,
): string => `concat('{"${RECORD_KINDS[kind].form.id.name}":', ${ID}, ',"deleted":true,"deleted_at":"',
      formatDateTime(e.gone, '%Y-%m-%dT%H:%i:%S.%f', 'UTC'), '+00:00"}')`;

/** `d`: instant of storing, or of deletion. */
function givenOut(kind: RecordKind, shape: ReadShape): string {
  const entries = `SELECT id, max(stored_at) AS s, maxIf(stored_at, deleted) AS gone FROM changes
      WHERE ${entriesOf(kind)} GROUP BY id`;
  // Of a version that is not stable yet no later entry was read.
  const stableUpTo = `${micros("stableUpTo")} - ${PLACES}`;
  // Records first: their snapshot must be older than that of handoffs. Deletions keep their place.
  return `SELECT if(empty(r.record), e.gone, e.s) AS d, e.id AS id, if(empty(r.record), ${deletedOf(kind)}, r.record) AS record
    FROM (${liveRecords(kind, shape)}) AS r RIGHT JOIN (${entries}) AS e ON r.id = e.id
    WHERE if(empty(r.record), e.gone > toDateTime64(0, 6, 'UTC'), e.s >= r.u OR r.u > ${stableUpTo})`;
}

export const changesOf = (kind: RecordKind, shape: ReadShape): string =>
  pageRows(
    RECORD_COLUMN,
    `SELECT d, id, record FROM (${givenOut(kind, shape)}) ORDER BY d, id ${FIRST_ROWS}`,
  );

export const changesInRange = (kind: RecordKind, shape: ReadShape): string =>
  `SELECT record FROM (${givenOut(kind, shape)}) ORDER BY d, id`;
