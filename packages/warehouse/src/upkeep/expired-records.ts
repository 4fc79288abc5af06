import {
  DATED_KINDS,
  type DatedKind,
  ownTableOf,
  RECORD_KINDS,
  type RecordKind,
} from "@conversation-export/domain";
import { micros } from "../session/micros-sql.ts";
import { CHANGES } from "../tables/changes.ts";
import { movedDatesSql, RECORD_DATES, recordNameSql } from "../tables/record-dates.ts";
import { OF_SHARE, RUN, SETTLED, type Table, TABLES } from "./erasure/erasure-keys.ts";

/** `cutoffs` (µs) in the order of `clients`; `latest`: the largest. */
export const isOlder = (column: string): string =>
  `client_id IN {clients:Array(String)}
    AND ${column} < ${micros("latest")} AND ${isBeforeCutoff(column)}`;
const isBeforeCutoff = (date: string): string =>
  `toUnixTimestamp64Micro(${date}) < {cutoffs:Array(Int64)}[indexOf({clients:Array(String)}, client_id)]`;

const NO_DATE = "toDateTime64(0, 6, 'UTC')";

export const EXPIRING: readonly Table[] = TABLES.map(({ table, records }) => ({
  table,
  records: records.map((one) =>
    DATED_KINDS.some((dated) => dated === one.kind) ? one : { ...one, date: NO_DATE, unlessIn: undefined },
  ),
}));

const INSERT = "INSERT INTO erasure_keys (client_id, phase, kind, id, date_created, request_id)";

/** Stored dates before the cutoff; `ofClient`: to run for each `client`. */
export const DATES_BEFORE: readonly { readonly ofClient: boolean; readonly statement: string }[] =
  EXPIRING.flatMap(({ table, records }) =>
    DATED_KINDS.flatMap((kind) =>
      records
        .filter((one) => one.kind === kind)
        .map(({ id, date, only = "1", named }) => {
          const place =
            named === undefined
              ? only
              : `startsWith(record, ${recordNameSql("{client:String}", named, "''")})`;
          return {
            ofClient: table === RECORD_DATES,
            statement: `${INSERT} SELECT client_id, 'found', '${kind} record', ${id}, ${date}, {request:String}
              FROM ${table} WHERE ${place} AND ${isOlder(date)}`,
          };
        }),
    ),
  );

const found = (kind: DatedKind): string =>
  `erasure_keys WHERE phase = 'found' AND kind = '${kind} record' AND ${RUN} AND ${OF_SHARE}`;

/** Entries are written before rows. A record without its settled rows would show an older version, or lack handoffs. */
const isSettled = (
  kind: DatedKind,
): string => `(client_id, id) GLOBAL NOT IN (SELECT client_id, id FROM ${CHANGES}
    WHERE client_id IN {clients:Array(String)} AND kind = '${kind}' AND NOT deleted AND stored_at >= ${SETTLED}
      AND (client_id, id) GLOBAL IN (SELECT client_id, id FROM ${found(kind)}))`;

/** Of a record with several dates the live one is `moved`, others are `stale`. */
export const expiredOf = (kind: DatedKind, rowsOf: (table: string) => string): readonly string[] => {
  const { name, id } = ownTableOf(kind);
  const dates = movedDatesSql(`SELECT ${recordNameSql("client_id", kind, "id")} FROM ${found(kind)}`);
  const live = `SELECT client_id, ${id} AS id,
      argMaxIf(date_created, (version, uploaded_at), _row_exists = 1) AS live
    FROM ${rowsOf(name)} WHERE (client_id, date_created, ${id}) GLOBAL IN
      (SELECT client_id, date_created, id FROM (${dates}))
    GROUP BY client_id, ${id} HAVING countIf(_row_exists = 1) > 0`;
  return [
    `${INSERT} SELECT DISTINCT client_id, 'deleting', kind, id, date_created, {request:String} FROM ${found(kind)}
      AND (client_id, id) GLOBAL NOT IN (SELECT client_id, id FROM (${live})) AND ${isSettled(kind)}`,
    `${INSERT} SELECT d.client_id, 'deleting', if(d.date_created = l.live, '${kind} moved', '${kind} stale'),
        d.id, d.date_created, {request:String}
      FROM (${dates}) AS d GLOBAL INNER JOIN
        (SELECT * FROM (${live}) WHERE ${isBeforeCutoff("live")} AND ${isSettled(kind)}) AS l
      ON d.client_id = l.client_id AND d.id = l.id`,
  ];
};

export const expiryColumnOf = (kind: RecordKind): string =>
  RECORD_KINDS[kind].expiresBy === "dateUpdated" ? "date_updated" : ownTableOf(kind).created;

/** Masked rows count only for records without any other row. */
const latest = (date: string): string => `if(max(visible) = 1, maxIf(${date}, visible = 1), max(${date}))`;

const undated = (kind: RecordKind, rowsOf: (table: string) => string): string => {
  const { name, id } = ownTableOf(kind);
  return `SELECT client_id, ${id} AS id, ${expiryColumnOf(kind)}, uploaded_at, _row_exists AS visible, 1 AS has_row
    FROM ${rowsOf(name)} WHERE client_id IN {clients:Array(String)}
  UNION ALL SELECT client_id, id, ${NO_DATE}, stored_at, 0, 0 FROM ${CHANGES}
    WHERE client_id IN {clients:Array(String)} AND kind = '${kind}' AND NOT deleted`;
};
export const countUndated = (kind: RecordKind, rowsOf: (table: string) => string): string =>
  `SELECT toString(count()) AS rows FROM (${undated(kind, rowsOf)})`;
/** `gone`: only entries are left. Nothing says how old they are: their events stay. */
export const expiredUndated = (kind: RecordKind, rowsOf: (table: string) => string): string =>
  `${INSERT} SELECT client_id, 'deleting', if(max(has_row) = 1, '${kind} record', '${kind} gone'), id, ${NO_DATE}, {request:String}
    FROM (${undated(kind, rowsOf)}) WHERE ${OF_SHARE} GROUP BY client_id, id
    HAVING ${isBeforeCutoff(latest(expiryColumnOf(kind)))} AND max(uploaded_at) < ${SETTLED}`;
