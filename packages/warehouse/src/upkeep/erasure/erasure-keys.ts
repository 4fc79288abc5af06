import {
  DATED_KINDS,
  type DatedKind,
  KIND_NAMES,
  type Micros,
  ownTableOf,
  READABLE_FIRST,
  RECORD_KINDS,
  type RecordKind,
  type RecordTableFacts,
} from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import { CHANGES } from "../../tables/changes.ts";
import { RECORD_DATES, recordNameSql } from "../../tables/record-dates.ts";

/** `subject`: by `subjectOf`; covers records created before `createdBefore`. */
export type ErasureSubject = {
  readonly clientId: string;
  readonly subject: string;
  readonly createdBefore: Micros;
  readonly requestId: string;
};

export type Table = {
  readonly table: string;
  /** `only`: condition for rows of the kind. */
  readonly records: readonly {
    readonly kind: RecordKind;
    readonly id: string;
    readonly date: string;
    readonly only?: string;
    /** The table names records by one column. */
    readonly named?: DatedKind;
    /** Keys here have no date: rows stay while this table has one of the same id that is not among the keys. */
    readonly unlessIn?: RecordTableFacts | undefined;
  }[];
};

/** In the order of deletion: first the rows that make a record readable. */
export const TABLES: readonly Table[] = [
  ...READABLE_FIRST.map(({ name, kind, id, created }) => ({
    table: name,
    records: [{ kind, id, date: created }],
  })),
  {
    table: RECORD_DATES,
    records: DATED_KINDS.map((kind) => ({
      kind,
      id: "id",
      date: "date_created",
      only: `kind = '${kind}'`,
      named: kind,
    })),
  },
  {
    table: CHANGES,
    records: KIND_NAMES.map((kind) => ({
      kind,
      id: "id",
      date: "date_created",
      only: `kind = '${kind}' AND NOT deleted`,
      ...(RECORD_KINDS[kind].code === null && { unlessIn: ownTableOf(kind) }),
    })),
  },
  {
    table: "landing",
    records: KIND_NAMES.map((kind) => ({
      kind,
      id: "record_id",
      date: "date_created",
      only: `type = '${RECORD_KINDS[kind].type}'`,
    })),
  },
];

export type ErasureRun = {
  readonly id: string;
  /** false: only looks. */
  readonly erases: boolean;
  /** µs: no batch with an earlier stamp is in flight. Looking needs none. */
  readonly settled?: Micros;
};
export type DeletingRun = ErasureRun & { readonly settled: Micros };

export const parametersOf = ({ id, erases, settled = Number.MAX_SAFE_INTEGER }: ErasureRun) => ({
  run: id,
  names: erases ? "erased" : "found",
  records: erases ? "deleting" : "found",
  settled,
  shares: 1,
  share: 0,
});
/** Bounds the memory of a set. */
export const OF_SHARE = "cityHash64(client_id, id) % {shares:UInt32} = {share:UInt32}";

/** A row stays until its request has ended. */
export const OF_RUN = `(SELECT client_id, request_id FROM erasure_keys
  WHERE phase = 'found' AND kind = 'run' AND id = {run:String})`;
export const RUN = `(client_id, request_id) GLOBAL IN ${OF_RUN}`;

/** A job's attempts share that of `again`, so that they find the same rows. */
export const ownRequest = ({ id, erases }: ErasureRun, what: "found" | "again"): string => {
  const [job = id] = id.split("/");
  return erases ? `${what}/${what === "again" ? job : id}` : `preview/${id}`;
};
/** Requests of retention begin so; no erasure works on their keys. */
export const OF_RETENTION = "expired/";
export const REASON = "splitByChar('/', request_id)[1]";
export const IS_OWN = "position(request_id, '/') > 0";

/** `SUBJECT`: as by `subjectOf`. */
export const OF_PERSON = "kind IN ('chatter_id', 'end_user_id', 'email')";
export const SUBJECT = "concat(kind, ':', id)";
export const OF_ID = `kind IN (${KIND_NAMES.filter((kind) => RECORD_KINDS[kind].idNames === null)
  .map((kind) => `'${kind}'`)
  .join(", ")})`;
export const nameOfId = (kind: RecordKind): string => RECORD_KINDS[kind].idNames ?? kind;
/** Ids of records of every kind, whether they name a person or not. */
export const OF_ANY_ID = `kind IN (${KIND_NAMES.map((kind) => `'${nameOfId(kind)}'`).join(", ")})`;
export const IS_NAME = `(${OF_PERSON} OR ${OF_ID})`;
export const recordKind = (kind: RecordKind): string => `${kind} record`;
export const IS_RECORD = `kind IN (${KIND_NAMES.map((kind) => `'${recordKind(kind)}'`).join()})`;

/** `landing` is sorted by it: a deletion reads only granules with its records. */
const sortedBy = (table: string, id: string): string =>
  table === "landing" ? `cityHash64(client_id, ${id}), ` : "";

/** No batch with an earlier stamp is still in flight. */
export const SETTLED = micros("settled");

type IsIn = "IN" | "GLOBAL IN";

/** A batch writes its entries before its rows. */
const hasNoOther = ({ name, id, created }: RecordTableFacts, from: string, isIn: IsIn): string =>
  `stored_at < ${SETTLED} AND NOT ((client_id, id) ${isIn} (SELECT client_id, ${id} FROM ${name}
    WHERE (client_id, ${id}) GLOBAL IN (SELECT client_id, id ${from})
      AND (client_id, ${created}, ${id}) GLOBAL NOT IN (SELECT client_id, date_created, id ${from})))`;

/** `columns` name a row in the table; `key`: the same of the run's keys. */
export const keysOf = (
  { table, records }: Table,
  isIn: IsIn = "GLOBAL IN",
  states: readonly string[] = ["record"],
) =>
  records.map(({ kind, id, date, only = "1", named, unlessIn }) => {
    const columns =
      named === undefined ? `(${sortedBy(table, id)}client_id, ${date}, ${id})` : `(record, ${date})`;
    const key =
      named === undefined
        ? `${sortedBy(table, "id")}client_id, date_created, id`
        : `${recordNameSql("client_id", named, "id")}, date_created`;
    const from = `FROM erasure_keys WHERE phase = {records:String} AND ${RUN} AND ${OF_SHARE}
      AND kind IN (${states.map((state) => `'${kind} ${state}'`).join()})`;
    const conditions = [
      // The name has the kind, and mutations of ClickHouse 25.8 find no alias columns.
      named === undefined ? only : "1",
      `${columns} ${isIn} (SELECT ${key} ${from})`,
      ...(unlessIn === undefined ? [] : [hasNoOther(unlessIn, from, isIn)]),
    ];
    return { columns, key, from, condition: `(${conditions.join(" AND ")})` };
  });

export const recordsOf = (table: Table, isIn?: IsIn, states?: readonly string[]): string =>
  keysOf(table, isIn, states)
    .map(({ condition }) => condition)
    .join(" OR ");

export const MAX_KEYS = 10_000;

const AT_ONCE = 4;

/** After a failure it waits for those still running, then throws. */
export async function all<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const some = items.slice(at, at + AT_ONCE).map(work);
    await Promise.allSettled(some);
    results.push(...(await Promise.all(some)));
  }
  return results;
}

export const countOf = ([row]: readonly { readonly rows: string }[]): number => Number(row?.rows);
