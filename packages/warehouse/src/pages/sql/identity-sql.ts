/** The largest version under any date is live. Look-ups in `record_dates` are expensive: docs/decisions/0024. */
import { type DatedKind, ownTableOf } from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import { unexpectedAnswer } from "../../session/warehouse-error.ts";
import { recordNameSql } from "../../tables/record-dates.ts";
import { COUNT_ERASED, isShown, selectErased } from "./erased-sql.ts";

/** `SELECT id FROM table WHERE range`. */
export type Candidates = {
  readonly kind: DatedKind;
  readonly id: string;
  readonly table: string;
  readonly range: string;
  readonly dates: string;
};

const nameOf = ({ kind, id }: Candidates): string => recordNameSql("{client:String}", kind, id);

export const COUNT_MOVED = "SELECT count() FROM moved_dates WHERE client_id = {client:String}";

/** With more, looking up all records of a page costs less. */
const MOST_ENTRIES = 50_000;
/** With more, looking for them in the page costs less. */
const FEW_ENTRIES = 50;
/** Servers and proxies limit the address, in which names travel. */
const MOST_NAME_CHARACTERS = 4_000;

const ofKind = (kind: DatedKind): string => `client_id = {client:String} AND kind = '${kind}'`;

const entriesSince = (kind: DatedKind): string =>
  `changes WHERE ${ofKind(kind)} AND NOT deleted AND stored_at >= ${micros("known")}`;

const mayHaveMoved = ({ kind, id, table, range }: Candidates): string => {
  const since = (column: string): string =>
    `SELECT ${column} FROM ${entriesSince(kind)} LIMIT ${MOST_ENTRIES + 1}`;
  return `((SELECT count() FROM (${since("1")})) > ${MOST_ENTRIES}
        OR date_created GLOBAL IN (SELECT date_created FROM moved_dates WHERE ${ofKind(kind)}
          AND date_created GLOBAL IN (SELECT date_created FROM ${table} WHERE ${range}))
        OR ${id} IN (${since("id")}))`;
};

function movedRecords(candidates: Candidates, condition = "true"): string {
  const { table, range } = candidates;
  return `SELECT record, groupUniqArray(date_created) AS dates FROM record_dates
      WHERE record IN (SELECT ${nameOf(candidates)} FROM ${table} WHERE ${range} AND ${condition})
      GROUP BY record HAVING min(date_created) != max(date_created)`;
}

/** `hasMoved`: in the range; `hasErased`: of the client. */
export type Conditions = {
  readonly hasMoved: boolean;
  readonly hasErased: boolean;
};

/** false: looks up all candidates. */
export function conditionsOf(candidates: Candidates | null, areKnown: boolean): string {
  if (candidates === null) return `SELECT 0, (${COUNT_ERASED})`;
  const condition = areKnown ? mayHaveMoved(candidates) : "true";
  return `SELECT count(), (${COUNT_ERASED}) FROM (${movedRecords(candidates, condition)})`;
}

export type Exceptions = {
  readonly hasErased: boolean;
  readonly atMovedDate: boolean;
  /** Names in `record_dates`; null: too many or too long. */
  readonly since: readonly string[] | null;
};

/** Does not read the candidates, which costs more. */
export function exceptionsAbout({ kind, dates }: Candidates): string {
  const name = recordNameSql("{client:String}", kind, "id");
  return `${selectErased("'erased', ''")}
    UNION ALL SELECT 'moved', '' FROM moved_dates WHERE ${ofKind(kind)} AND ${dates} LIMIT 1
    UNION ALL SELECT 'since', ${name} FROM ${entriesSince(kind)} LIMIT ${FEW_ENTRIES + 1}
    UNION ALL SELECT 'whole', ''`;
}

/** Of JSONCompactEachRow. @throws WarehouseError */
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
    atMovedDate: of("moved").length > 0,
    since: areFew ? since : null,
  };
}

export const SOME_HAS_MOVED = `SELECT count() FROM (SELECT 1 FROM record_dates WHERE record IN {names:Array(String)}
    GROUP BY record HAVING min(date_created) != max(date_created) LIMIT 1)`;

/** @throws WarehouseError */
export const someHasMoved = (answer: string): boolean => {
  if (answer !== "0\n" && answer !== "1\n") throw unexpectedAnswer();
  return answer === "1\n";
};

/** @throws WarehouseError */
export const conditionsOfAnswer = (answer: string): Conditions => {
  const [, moved, erased] = /^(\d+)\t(\d+)\n$/.exec(answer) ?? [];
  if (erased === undefined) throw unexpectedAnswer();
  return { hasMoved: moved !== "0", hasErased: erased !== "0" };
};

export function datesOfMoved(candidates: Candidates): string {
  return `(SELECT arrayJoin(dates) FROM (${movedRecords(candidates)}))`;
}

/** `(id, date of creation)` under dates that are not the live one. */
export function staleRows(candidates: Candidates): string {
  const { id } = candidates;
  return `(SELECT id, d FROM (
      SELECT ${id} AS id, argMax(date_created, (version, uploaded_at)) AS live, groupUniqArray(date_created) AS ds
      FROM ${ownTableOf(candidates.kind).name}
      WHERE client_id = {client:String} AND date_created IN ${datesOfMoved(candidates)}
        AND ${nameOf(candidates)} IN (SELECT record FROM (${movedRecords(candidates)}))
      GROUP BY ${id}) ARRAY JOIN ds AS d WHERE d != live)`;
}

export const isNotStale = (candidates: Candidates, hasMoved: boolean): string =>
  hasMoved ? `(${candidates.id}, date_created) NOT IN ${staleRows(candidates)}` : "true";

/** Either row may be kept when one arrives under another date meanwhile. */
export const onceOnly = ({ id }: Pick<Candidates, "id">): string => `LIMIT 1 BY ${id}`;

/** May hold a record twice: see `onceOnly`. */
export const liveRows = (
  columns: string,
  candidates: Candidates,
  { hasMoved, hasErased }: Conditions,
): string => `SELECT ${columns}
    FROM ${candidates.table} FINAL
    WHERE ${candidates.range} AND ${isNotStale(candidates, hasMoved)} AND ${isShown(candidates.kind, hasErased, { table: candidates.table, where: candidates.range })}
    ORDER BY client_id, date_created, ${candidates.id}`;

export const liveInOrder = (columns: string, candidates: Candidates, shape: Conditions): string =>
  `${liveRows(columns, candidates, shape)} ${onceOnly(candidates)}`;
