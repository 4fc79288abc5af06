import {
  EVENT_TYPES,
  type EventType,
  type Micros,
  OWN_TABLE_OF,
  type RecordTable,
  type StoredRow,
  TABLE_FACTS,
  TABLES_OF,
} from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import type { Session } from "../../session/session.ts";
import { headersOfLanding } from "../../tables/landing.ts";
import { NO_PROJECTIONS } from "../deletion.ts";
import { BEGUN, BEGUN_ROWS } from "../job-keys.ts";
import { type HashRange, hashRanges, inRange, rangeParameters, recordHash } from "./hash-range.ts";
import { landingCondition, type LandingSelection, storedCondition } from "./landing-selection.ts";
import { storedColumns, storedRowOf, type StoredValues } from "./stored-rows.ts";

export type LandedEvent = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly type: EventType;
  readonly clientId: string;
  readonly recordId: string;
  readonly hash: string;
  /** As parsed when the event landed. */
  readonly dateCreated: Micros;
  readonly uploadedAt: Micros;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly text: string;
};

/** Two records may share a hash. */
export type HashedRecord = { readonly type: EventType; readonly hash: string };

export const hashKey = ({ type, hash }: HashedRecord): string => `${type} ${hash}`;

/** A run is a partition of `backfill_rows`: stored rows as of its begin. @throws WarehouseError */
export type BackfillRuns = {
  count(selection: LandingSelection, signal: AbortSignal): Promise<number>;
  countOlder(
    type: EventType,
    selection: LandingSelection,
    before: Micros,
    signal: AbortSignal,
  ): Promise<number>;
  begin(
    run: string,
    selections: readonly LandingSelection[],
    events: number,
    signal: AbortSignal,
  ): Promise<void>;
  countMarked(run: string, signal: AbortSignal): Promise<number>;
  beginMarked(run: string, other: string, records: number, signal: AbortSignal): Promise<void>;
  exists(run: string, signal: AbortSignal): Promise<boolean>;
  /** By `hashKey`; rows of equal version in the order of insertion. */
  stored(
    run: string,
    range: HashRange,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly StoredRow[]>>;
  /** Grouped by record, in the order of upload. */
  landed(run: string, range: HashRange, signal: AbortSignal): AsyncIterable<readonly LandedEvent[]>;
  mark(run: string, records: readonly HashedRecord[], signal: AbortSignal): Promise<void>;
  list(): Promise<readonly { readonly run: string; readonly isOld: boolean }[]>;
  forget(run: string): Promise<void>;
};

/** Events at a time: ClickHouse holds their hashes in memory. */
const LOOKED_UP = 10_000_000;

type LandedValues = [
  topic: string,
  partition: number,
  offset: number,
  type: EventType,
  client: string,
  id: string,
  hash: string,
  dateCreated: number,
  uploadedAt: number,
  headers: [name: string, value: string][],
  payload: string,
];

const LANDED = "landed ";
const WRONG = "wrong ";
const PUBLISHED = "published ";
const TYPE_OF_TABLE = new Map(
  EVENT_TYPES.flatMap((type) => TABLES_OF[type].map((table) => [table, type] as const)),
);
const OF_RUN = "run_id = {run:String}";
const LANDED_HASH = recordHash("record_id");

const isSelected = (type: EventType, hash: string, clientId: string | null): string =>
  `${clientId === null ? "" : "client_id = {client:String} AND "}${hash} IN
    (SELECT record FROM backfill_rows WHERE ${OF_RUN} AND kind = '${LANDED}${type}' AND ${inRange("record")})`;

const copySql = (type: EventType, table: RecordTable, clientId: string | null): string => {
  const hash = recordHash(TABLE_FACTS[table].id);
  return `INSERT INTO backfill_rows
      (run_id, record, kind, key_date, target, target_kind, version, uploaded_at, block, place, digest)
    SELECT {run:String}, ${hash}, '${table}', ${storedColumns(table)} FROM ${table}
    PREWHERE ${isSelected(type, hash, clientId)}`;
};

/** An entry's `stored_at` is at most a second after its row's `uploaded_at`; a deletion's describes no row. */
const copyEntriesSql = (type: EventType, clientId: string | null): string => {
  const { name, kind } = OWN_TABLE_OF[type];
  const hash = recordHash("id");
  return `INSERT INTO backfill_rows (run_id, record, kind, uploaded_at)
    SELECT {run:String}, ${hash}, '${PUBLISHED}${name}', stored_at FROM changes
    PREWHERE ${isSelected(type, hash, clientId)}
    WHERE changes.kind = '${kind}' AND NOT deleted AND toDateTime(stored_at) IN
      (SELECT arrayJoin([toDateTime(uploaded_at), toDateTime(uploaded_at) + 1]) FROM backfill_rows
        WHERE ${OF_RUN} AND kind = '${name}' AND ${inRange("record")})`;
};

const OWN_NAMES = EVENT_TYPES.map((type) => `'${OWN_TABLE_OF[type].name}'`).join();
/** A row without an entry of `changes` gets no digest, so that it is written again. */
const STORED_SQL = `SELECT toString(r.record), r.kind, r.key_date, r.target, r.target_kind, toString(r.version),
    toUnixTimestamp64Micro(r.uploaded_at), if(r.kind IN (${OWN_NAMES}) AND t.until < r.uploaded_at, '', r.digest)
  FROM backfill_rows AS r
  LEFT JOIN (SELECT record, kind, max(uploaded_at) AS until FROM backfill_rows
    WHERE ${OF_RUN} AND ${inRange("record")} AND startsWith(kind, '${PUBLISHED}') GROUP BY record, kind) AS t
  ON t.record = r.record AND t.kind = concat('${PUBLISHED}', r.kind)
  WHERE ${OF_RUN} AND ${inRange("r.record")} AND r.kind IN {tables:Array(String)}
  ORDER BY r.block, r.place`;

const LANDED_SQL = `SELECT topic, partition, offset, type, client_id, record_id, toString(${LANDED_HASH}),
    toUnixTimestamp64Micro(date_created), toUnixTimestamp64Micro(uploaded_at),
    CAST(headers, 'Array(Tuple(String, String))'), payload
  FROM landing WHERE ${inRange(LANDED_HASH)} AND (${LANDED_HASH}, concat('${LANDED}', type)) IN
    (SELECT record, toString(kind) FROM backfill_rows
      WHERE ${OF_RUN} AND startsWith(kind, '${LANDED}') AND ${inRange("record")})
  ORDER BY ${LANDED_HASH}, type, client_id, record_id, uploaded_at`;

export function createBackfillRuns(deps: { readonly session: Session }): BackfillRuns {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      ...NO_PROJECTIONS,
      async_insert: 0,
      // The sort holds payloads: above these bytes it spills to disk.
      max_bytes_before_external_sort: "536870912",
    },
  });

  const fill = async (
    run: string,
    records: number,
    clientId: string | null,
    selected: readonly { readonly sql: string; readonly parameters: Readonly<Record<string, unknown>> }[],
    signal: AbortSignal,
  ): Promise<void> => {
    for (const range of hashRanges(Math.ceil(records / LOOKED_UP) || 1)) {
      const common = { run, client: clientId, ...rangeParameters(range) };
      for (const { sql, parameters } of selected)
        await session.command("backfill.select", `INSERT INTO backfill_rows (run_id, record, kind) ${sql}`, {
          parameters: { ...common, ...parameters },
          signal,
        });
      const copied = { parameters: common, signal };
      for (const [table, type] of TYPE_OF_TABLE)
        await session.command("backfill.copy", copySql(type, table, clientId), copied);
      // After the rows: an entry is written before its row.
      for (const type of EVENT_TYPES)
        await session.command("backfill.copy", copyEntriesSql(type, clientId), copied);
    }
    await insert(
      run,
      Array.from({ length: BEGUN_ROWS }, (_, at) => ({ kind: BEGUN, record: String(at) })),
      signal,
    );
  };

  const insert = (run: string, records: readonly { kind: string; record: string }[], signal: AbortSignal) => {
    const rows = records.map((one) => ({ run_id: run, ...one }));
    return session.insert("backfill.mark", { table: "backfill_rows", rows }, { signal });
  };
  const numberOf = async (sql: string, parameters: object, signal: AbortSignal): Promise<number> => {
    const [row] = await session.rows<{ n: string }>("backfill.count", sql, {
      parameters: { ...parameters },
      signal,
    });
    return Number(row?.n);
  };

  return {
    count: (selection, signal) => {
      const { sql, parameters } = landingCondition(selection);
      return numberOf(`SELECT toString(count()) AS n FROM landing WHERE ${sql}`, parameters, signal);
    },
    countOlder: (type, selection, before, signal) => {
      const { sql, parameters } = storedCondition(selection);
      const { name, id } = OWN_TABLE_OF[type];
      return numberOf(
        `SELECT toString(uniq(client_id, ${id})) AS n FROM ${name}
          WHERE ${sql} AND uploaded_at < ${micros("before")}`,
        { ...parameters, before },
        signal,
      );
    },
    begin: (run, selections, events, signal) => {
      const selected = selections.map((selection) => {
        const { sql, parameters } = landingCondition(selection);
        return {
          sql: `SELECT DISTINCT {run:String}, ${LANDED_HASH}, concat('${LANDED}', type) FROM landing
            WHERE ${inRange(LANDED_HASH)} AND type IN {types:Array(String)} AND ${sql}`,
          parameters: { ...parameters, types: EVENT_TYPES },
        };
      });
      return fill(run, events, selections[0]?.clientId ?? null, selected, signal);
    },
    countMarked: (run, signal) =>
      numberOf(
        `SELECT toString(uniqExact(record, kind)) AS n FROM backfill_rows
          WHERE ${OF_RUN} AND startsWith(kind, '${WRONG}')`,
        { run },
        signal,
      ),
    beginMarked: (run, other, records, signal) => {
      const sql = `SELECT DISTINCT {run:String}, record, concat('${LANDED}', substring(kind, ${WRONG.length + 1}))
        FROM backfill_rows
        WHERE run_id = {other:String} AND startsWith(kind, '${WRONG}') AND ${inRange("record")}`;
      return fill(run, records, null, [{ sql, parameters: { other } }], signal);
    },
    exists: async (run, signal) =>
      (await numberOf(
        `SELECT toString(uniqExact(record)) AS n FROM backfill_rows
          WHERE ${OF_RUN} AND record < ${BEGUN_ROWS} AND kind = '${BEGUN}'`,
        { run },
        signal,
      )) === BEGUN_ROWS,
    async stored(run, range, signal) {
      const records = new Map<string, StoredRow[]>();
      const chunks = session.chunks<[hash: string, ...StoredValues]>("backfill.stored", STORED_SQL, {
        parameters: { run, tables: [...TYPE_OF_TABLE.keys()], ...rangeParameters(range) },
        signal,
      });
      for await (const chunk of chunks) {
        for (const [hash, ...values] of chunk) {
          const row = storedRowOf(values);
          const type = TYPE_OF_TABLE.get(row.table);
          if (type === undefined) throw new TypeError(`${row.table} is no table of records`);
          const name = hashKey({ type, hash });
          const known = records.get(name);
          if (known === undefined) records.set(name, [row]);
          else known.push(row);
        }
      }
      return records;
    },
    async *landed(run, range, signal) {
      const parameters = { run, ...rangeParameters(range) };
      const chunks = session.chunks<LandedValues>("backfill.landed", LANDED_SQL, { parameters, signal });
      for await (const chunk of chunks) {
        yield chunk.map(([topic, partition, offset, type, clientId, recordId, hash, ...others]) => {
          const [dateCreated, uploadedAt, headers, text] = others;
          const names = { topic, partition, offset, type, clientId, recordId, hash };
          return { ...names, dateCreated, uploadedAt, headers: headersOfLanding(headers), text };
        });
      }
    },
    mark: async (run, records, signal) => {
      if (records.length === 0) return;
      const rows = records.map(({ type, hash }) => ({ kind: `${WRONG}${type}`, record: hash }));
      await insert(run, rows, signal);
    },
    list: async () => {
      const runs = await session.rows<{ run: string; old: number }>(
        "backfill.runs",
        `SELECT run_id AS run, toUInt8(max(added_at) < now() - INTERVAL 1 DAY) AS old
          FROM backfill_rows GROUP BY run_id`,
      );
      return runs.map(({ run, old }) => ({ run, isOld: old === 1 }));
    },
    forget: (run) =>
      session.commandEverywhere(
        "backfill.forget",
        `ALTER TABLE ${session.names.target("backfill_rows")} DROP PARTITION {run:String}`,
        {
          parameters: { run },
          // Servers refuse to drop large partitions otherwise.
          settings: { max_partition_size_to_drop: "0" },
        },
      ),
  };
}
