import { type DatedKind, recordNameSql } from "../tables/record-dates.ts";
import { KEYS_ARE_KEPT } from "./job-keys.ts";

/**
 * SQL: dated before the client's cutoff. Parameters: clients, cutoffs (µs, in the same order), latest (the
 * largest cutoff).
 */
export const isOlder = (column: string): string =>
  `client_id IN {clients:Array(String)}
    AND ${column} < fromUnixTimestamp64Micro({latest:Int64}, 'UTC')
    AND toUnixTimestamp64Micro(${column}) < {cutoffs:Array(Int64)}[indexOf({clients:Array(String)}, client_id)]`;

/** SQL: written so long ago that no batch with this instant of upload is still on its way. */
export const SETTLED = "fromUnixTimestamp64Micro({settled:Int64}, 'UTC')";

const keysOf = (state: string, kind: DatedKind, columns: string): string =>
  `(SELECT ${columns} FROM job_keys WHERE run_id = {run:String} AND kind = '${state} ${kind}')`;

const isOfExpired = (
  state: "expired" | "stale",
  kind: DatedKind,
  { id, created }: { readonly id: string; readonly created: string },
): string => `(client_id, ${created}, ${id}) IN ${keysOf(state, kind, "client_id, date_created, id")}`;

/**
 * SQL: the row belongs to an expired record. A record expires by the date of its live row. Most have one
 * date; the others are noted by the statements below. Without the notes nothing is expired: those of kept
 * records hold rows back.
 */
export const isExpired = (
  kind: DatedKind,
  { id, created, settled }: { readonly id: string; readonly created: string; readonly settled: string },
): string => `((${isOlder(created)} AND (client_id, ${id}) NOT IN ${keysOf("kept", kind, "client_id, id")}
      AND ${KEYS_ARE_KEPT})
    OR ((${isOfExpired("expired", kind, { id, created })} OR ${isOfExpired("stale", kind, { id, created })}) AND ${settled}))`;

/**
 * SQL: the row belongs to an expired record and stands under a date that is not its live one. These go first:
 * if the live row went before them, one of them would become the live one.
 */
export const isStale = (kind: DatedKind, names: { readonly id: string; readonly created: string }): string =>
  `(${isOfExpired("stale", kind, names)} AND uploaded_at < ${SETTLED})`;

type Sources = {
  /** Tables with rows of the kind: columns of id and date. */
  readonly tables: readonly { readonly name: string; readonly id: string; readonly created: string }[];
  /** The one that decides which row is live, as it is read with `_row_exists`. */
  readonly own: { readonly from: string; readonly id: string };
};

/** SQL for the number of expired rows from which the ids are looked up. */
export const countOlder = ({ tables }: Sources): string =>
  `SELECT sum(n) AS n FROM (${tables
    .map(({ name, created }) => `SELECT count() AS n FROM ${name} WHERE ${isOlder(created)}`)
    .join(" UNION ALL ")})`;

/**
 * Statements that note the dates of records with several: `kept`, or of an expired record `expired` (the live
 * one) and `stale` (the others). Further parameters: chunk, chunks (a share of the ids, to bound memory). A
 * record with a row that has just come is kept until the next run.
 */
export const noteMoved = (kind: DatedKind, { tables, own }: Sources): readonly string[] => {
  const older = tables.map(
    ({ name, id, created }) => `SELECT ${recordNameSql("client_id", kind, id)} FROM ${name}
        WHERE ${isOlder(created)} AND cityHash64(client_id, ${id}) % {chunks:UInt32} = {chunk:UInt32}`,
  );
  const dates = keysOf("dates", kind, "client_id, date_created, id");
  return [
    `INSERT INTO job_keys (run_id, kind, client_id, id, date_created)
      SELECT {run:String}, 'dates ${kind}', client_id, id, date FROM (
        SELECT client_id, id, groupUniqArray(date_created) AS dates FROM record_dates
        WHERE client_id IN {clients:Array(String)} AND record GLOBAL IN (${older.join(" UNION ALL ")})
        GROUP BY client_id, id HAVING length(dates) > 1)
      ARRAY JOIN dates AS date`,
    `INSERT INTO job_keys (run_id, kind, client_id, id, date_created)
      SELECT {run:String},
        multiIf(NOT l.expired, 'kept ${kind}', d.date_created = l.live, 'expired ${kind}', 'stale ${kind}'),
        d.client_id, d.id, d.date_created
      FROM ${keysOf("dates", kind, "client_id, id, date_created")} AS d
      GLOBAL INNER JOIN (
        SELECT client_id, ${own.id} AS id,
          argMaxIf(date_created, (version, uploaded_at), _row_exists = 1) AS live,
          toUnixTimestamp64Micro(live) < {cutoffs:Array(Int64)}[indexOf({clients:Array(String)}, client_id)]
            AND max(uploaded_at) < ${SETTLED} AS expired
        FROM ${own.from} WHERE (client_id, date_created, ${own.id}) GLOBAL IN ${dates}
        GROUP BY client_id, ${own.id} HAVING countIf(_row_exists = 1) > 0) AS l
      ON d.client_id = l.client_id AND d.id = l.id`,
  ];
};
