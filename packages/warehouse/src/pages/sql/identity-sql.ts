/**
 * The SQL for moved records: the live row is the one with the largest version under any date. `record_dates`
 * names all dates of a record before it has rows there; look-ups there are expensive, so only possible moved
 * records are looked up.
 */
import { type DatedKind, ownTableOf } from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import { unexpectedAnswer } from "../../session/warehouse-error.ts";
import { recordNameSql } from "../../tables/record-dates.ts";
import { COUNT_ERASED, isShown, selectErased } from "./erased-sql.ts";

/** Which records a statement looks at: `SELECT id FROM table WHERE range`. */
export type Candidates = {
  readonly kind: DatedKind;
  /** Column of the record's id. */
  readonly id: string;
  readonly table: string;
  readonly range: string;
  /** SQL condition for dates of creation that their rows may have. */
  readonly dates: string;
};

const nameOf = ({ kind, id }: Candidates): string => recordNameSql("{client:String}", kind, id);

/** SQL for how many dates of the client are noted. */
export const COUNT_MOVED = "SELECT count() FROM moved_dates WHERE client_id = {client:String}";

/** With more entries since `noted`, to look up all records of a page costs less. */
const MOST_ENTRIES = 50_000;
/** With more entries since `noted`, to look for them in the page costs less than to look up all of them. */
const FEW_ENTRIES = 50;
/** Names travel in the address of a request, which servers and proxies bound. */
const MOST_NAME_CHARACTERS = 4_000;

const ofKind = (kind: DatedKind): string => `client_id = {client:String} AND kind = '${kind}'`;

/** What FROM is followed by for the entries of the client since `noted`. */
const entriesSince = (kind: DatedKind): string =>
  `changes WHERE ${ofKind(kind)} AND NOT deleted AND stored_at >= ${micros("noted")}`;

/**
 * SQL condition for records that may have moved: those in `moved_dates`, or with an entry of `changes` since
 * `noted`.
 */
const mayHaveMoved = ({ kind, id, table, range }: Candidates): string => {
  const since = (column: string): string =>
    `SELECT ${column} FROM ${entriesSince(kind)} LIMIT ${MOST_ENTRIES + 1}`;
  return `((SELECT count() FROM (${since("1")})) > ${MOST_ENTRIES}
        OR date_created GLOBAL IN (SELECT date_created FROM moved_dates WHERE ${ofKind(kind)}
          AND date_created GLOBAL IN (SELECT date_created FROM ${table} WHERE ${range}))
        OR ${id} IN (${since("id")}))`;
};

/** SELECT of the records with several dates among the candidates that meet a condition: `record`, `dates`. */
function movedRecords(candidates: Candidates, condition = "true"): string {
  const { table, range } = candidates;
  return `SELECT record, groupUniqArray(date_created) AS dates FROM record_dates
      WHERE record IN (SELECT ${nameOf(candidates)} FROM ${table} WHERE ${range} AND ${condition})
      GROUP BY record HAVING min(date_created) != max(date_created)`;
}

/** What a statement must handle about the records that it looks at. */
export type Facts = {
  readonly hasMoved: boolean;
  /** Some records of the client are erased. */
  readonly hasErased: boolean;
};

/**
 * SQL for the facts about the candidates or the client; see `factsOfAnswer`.
 * @param areNoted with the parameter `noted` (µs); false: all candidates are looked up
 */
export function factsOf(candidates: Candidates | null, areNoted: boolean): string {
  if (candidates === null) return `SELECT 0, (${COUNT_ERASED})`;
  const condition = areNoted ? mayHaveMoved(candidates) : "true";
  return `SELECT count(), (${COUNT_ERASED}) FROM (${movedRecords(candidates, condition)})`;
}

/** What may be facts about the candidates of a statement. */
export type Exceptions = {
  readonly hasErased: boolean;
  readonly atNotedDate: boolean;
  /** Names in `record_dates` of records of the client with entries since `noted`; null: they are many or long. */
  readonly since: readonly string[] | null;
};

/**
 * SQL for what may be exceptions, by `noted`; see `exceptionsOfAnswer`. Does not read the candidates, which costs
 * more.
 */
export function exceptionsAbout({ kind, dates }: Candidates): string {
  const name = recordNameSql("{client:String}", kind, "id");
  return `${selectErased("'erased', ''")}
    UNION ALL SELECT 'moved', '' FROM moved_dates WHERE ${ofKind(kind)} AND ${dates} LIMIT 1
    UNION ALL SELECT 'since', ${name} FROM ${entriesSince(kind)} LIMIT ${FEW_ENTRIES + 1}
    UNION ALL SELECT 'whole', ''`;
}

/**
 * Parses the answer to the statement of `exceptionsAbout` in JSONCompactEachRow.
 * @throws WarehouseError when it is none
 */
export function exceptionsOfAnswer(answer: string): Exceptions {
  const rows = answer
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as readonly [what: string, name: string]);
  const of = (wanted: string): string[] => rows.flatMap(([what, name]) => (what === wanted ? [name] : []));
  if (of("whole").length !== 1) throw unexpectedAnswer();
  const since = of("since");
  const areFew =
    since.length <= FEW_ENTRIES && encodeURIComponent(since.join("")).length <= MOST_NAME_CHARACTERS;
  return {
    hasErased: of("erased").length > 0,
    atNotedDate: of("moved").length > 0,
    since: areFew ? since : null,
  };
}

/** SQL for whether one of the records with these `names` has several dates: 1 or 0. */
export const SOME_HAS_MOVED = `SELECT count() FROM (SELECT 1 FROM record_dates WHERE record IN {names:Array(String)}
    GROUP BY record HAVING min(date_created) != max(date_created) LIMIT 1)`;

/** Parses the answer to `SOME_HAS_MOVED`. @throws WarehouseError when it is none */
export const someHasMoved = (answer: string): boolean => {
  if (answer !== "0\n" && answer !== "1\n") throw unexpectedAnswer();
  return answer === "1\n";
};

/** Parses the answer to the statement of `factsOf`. @throws WarehouseError when it is none */
export const factsOfAnswer = (answer: string): Facts => {
  const [, moved, erased] = /^(\d+)\t(\d+)\n$/.exec(answer) ?? [];
  if (erased === undefined) throw unexpectedAnswer();
  return { hasMoved: moved !== "0", hasErased: erased !== "0" };
};

export function datesOfMoved(candidates: Candidates): string {
  return `(SELECT arrayJoin(dates) FROM (${movedRecords(candidates)}))`;
}

/** A set of `(id, date of creation)` of the rows of candidates under dates that are not the live one. */
export function staleRows(candidates: Candidates): string {
  const { id } = candidates;
  return `(SELECT id, d FROM (
      SELECT ${id} AS id, argMax(date_created, (version, uploaded_at)) AS live, groupUniqArray(date_created) AS ds
      FROM ${ownTableOf(candidates.kind).name}
      WHERE client_id = {client:String} AND date_created IN ${datesOfMoved(candidates)}
        AND ${nameOf(candidates)} IN (SELECT record FROM (${movedRecords(candidates)}))
      GROUP BY ${id}) ARRAY JOIN ds AS d WHERE d != live)`;
}

/** SQL condition for rows of candidates that are not stale; `true` when none has several dates. */
export const isNotStale = (candidates: Candidates, hasMoved: boolean): string =>
  hasMoved ? `(${candidates.id}, date_created) NOT IN ${staleRows(candidates)}` : "true";

/** Keeps one row of each record; either may be kept when one arrives under another date meanwhile. */
export const onceOnly = ({ id }: Pick<Candidates, "id">): string => `LIMIT 1 BY ${id}`;

type Handled = { readonly hasMoved: boolean; readonly hasErased: boolean };

/** SELECT of the live rows of candidates by creation, in order; what it is part of keeps one of each record. */
export const liveRows = (
  columns: string,
  candidates: Candidates,
  { hasMoved, hasErased }: Handled,
): string => `SELECT ${columns}
    FROM ${candidates.table} FINAL
    WHERE ${candidates.range} AND ${isNotStale(candidates, hasMoved)} AND ${isShown(candidates.kind, hasErased, { table: candidates.table, where: candidates.range })}
    ORDER BY client_id, date_created, ${candidates.id}`;

/** SELECT of the live records of candidates by creation, in order. */
export const liveInOrder = (columns: string, candidates: Candidates, shape: Handled): string =>
  `${liveRows(columns, candidates, shape)} ${onceOnly(candidates)}`;
