import type { ClickHouseClient } from "@clickhouse/client";
import type { Micros, PartitionFacts, WindowTable } from "@conversation-export/domain";
import { clusterNames } from "./cluster-names.ts";
import { type ConnectionOptions, connect, type WarehouseAccess } from "./connection.ts";
import { createEveryServer, type EveryServer } from "./every-server.ts";
import type { Topology } from "./migration-template.ts";
import { withoutUpload } from "./row-content.ts";
import { toWarehouseError, WarehouseError } from "./warehouse-error.ts";

export type Partition = { readonly table: WindowTable; readonly partition: string };

/**
 * `missing`: records that are gone; `changed`: those that have become older, or other without a later upload. What a
 * writer has written again, with the same content or corrected, is no change.
 */
export type Comparison = { readonly compared: number; readonly missing: number; readonly changed: number };

/** Partitions of the tables of records. Throws `WarehouseError`. */
export type PartitionStore = {
  facts(partition: Partition, quietSeconds: number): Promise<PartitionFacts>;
  /** Partitions that are old enough for the smaller codec and not written with it yet. */
  coldPartitions(): Promise<readonly Partition[]>;
  /** Merges a partition to one part. false: merges are stopped, or others keep the partition busy. */
  merge(partition: Partition, signal?: AbortSignal): Promise<boolean>;
  /** Keeps keys, versions and hashes of the readable records under the name of the run. */
  note(run: string, partition: Partition, signal?: AbortSignal): Promise<void>;
  /**
   * Compares what was noted with what is readable now; a note of which the writing broke off is compared as far as it
   * goes.
   */
  compare(run: string, partition: Partition, signal?: AbortSignal): Promise<Comparison>;
  /** true: a deletion in the table is under way, or began at or after the instant (µs; null: no matter which). */
  deletedSince(table: WindowTable, instant: Micros | null): Promise<boolean>;
  /** When the run noted the records, by ClickHouse's clock, µs, whole seconds; null: it has not. */
  notedAt(run: string): Promise<Micros | null>;
  forget(run: string): Promise<void>;
  close(): Promise<void>;
};

/** As the migrations tell the tables. */
const COLD_DAYS = 365;

/** A deletion that was over at once may have begun a little before the note that it spoils. */
const MARGIN_SECONDS = 5;
/** The last second that a DateTime has. */
const NEVER = 2 ** 32 - 1;

const KEYS: Readonly<Record<WindowTable, { readonly key: string; readonly content: string }>> = {
  conversations: {
    key: "client_id, date_created, conversation_id",
    content: `${withoutUpload("head")}, tail`,
  },
  conversation_updates: {
    key: "client_id, date_updated, conversation_id, version",
    content: `${withoutUpload("head")}, tail, date_created`,
  },
  handoffs: {
    key: "client_id, conversation_date_created, conversation_id, target, target_kind",
    content: "entry, date_created",
  },
  messages: {
    key: "client_id, date_created, message_id",
    content: `${withoutUpload("record")}, conversation_id`,
  },
  end_users: { key: "client_id, end_user_id", content: "record, email, external_ids" },
};

// Merges that are stopped, cancelled or that other merges keep from starting.
const NOT_MERGED: ReadonlySet<string> = new Set(["ABORTED", "CANNOT_ASSIGN_OPTIMIZE", "TIMEOUT_EXCEEDED"]);

const recordsOf = (table: WindowTable): string => {
  const { key, content } = KEYS[table];
  const hash = `reinterpretAsUInt128(sipHash128(${key}))`;
  return `SELECT toUInt16(cityHash64(${key})) AS bucket, ${hash} AS key, toUInt256(version) AS version,
      cityHash64(${content}) AS hash, uploaded_at
    FROM ${table} FINAL WHERE _partition_id = {partition:String}`;
};

const NOTED =
  "SELECT bucket, key, version, hash, uploaded_at FROM compaction_checks WHERE run_id = {run:String}";
const perBucket = (records: string, sign: string): string =>
  `SELECT bucket, ${sign}toInt64(count()) AS n, groupBitXor(cityHash64(key, version, hash)) AS x
    FROM (${records}) GROUP BY bucket`;

const differingBuckets = (table: WindowTable): string => `SELECT bucket
  FROM (${perBucket(NOTED, "")} UNION ALL ${perBucket(recordsOf(table), "-")})
  GROUP BY bucket HAVING sum(n) != 0 OR groupBitXor(x) != 0`;

const differences = (table: WindowTable): string => `SELECT countIf(NOT a.found) AS missing,
    countIf(a.found AND (a.version < b.version OR (a.version = b.version AND a.hash != b.hash
      AND a.uploaded_at <= b.uploaded_at))) AS changed
  FROM (${NOTED} AND bucket IN {buckets:Array(UInt16)}) AS b
  LEFT JOIN (SELECT *, true AS found FROM (${recordsOf(table)}) WHERE bucket IN {buckets:Array(UInt16)}) AS a
    ON a.key = b.key`;

/** `url`: of the user for jobs. */
export function createPartitionStore(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): PartitionStore {
  const { topology } = deps;
  const connection: ConnectionOptions = {
    ...deps,
    maxOpenConnections: 2,
    requestTimeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      output_format_json_quote_64bit_integers: 0,
      do_not_merge_across_partitions_select_final: 1,
      join_use_nulls: 0,
    },
  };
  const client: ClickHouseClient = connect(connection);
  const servers = createEveryServer({ ...connection, topology });
  const { local: localName, target, system } = clusterNames(topology);

  async function run<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      signal?.throwIfAborted();
      return await work();
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw toWarehouseError(error);
    }
  }
  const signalOf = (signal: AbortSignal | undefined) =>
    signal === undefined ? {} : { abort_signal: signal };

  const rowsOf = <T>(
    query: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<T[]> =>
    run(async () => {
      const sent = { query, query_params: parameters, format: "JSONEachRow", ...signalOf(signal) } as const;
      return await (await client.query(sent)).json<T>();
    }, signal);

  const command = (
    on: Pick<EveryServer, "command">,
    query: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<void> =>
    run(async () => {
      await on.command({ query, query_params: parameters, ...signalOf(signal) });
    }, signal);

  /** The active parts of all servers. */
  const partsOf = async (
    table: WindowTable,
    partition: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> => {
    const rows = await rowsOf<{ part: string }>(
      `SELECT concat(hostName(), ':', toString(tcpPort()), ' ', name) AS part FROM ${system("parts")}
        WHERE active AND database = currentDatabase() AND table = {table:String} AND partition_id = {partition:String}`,
      { table: localName(table), partition },
      signal,
    );
    return rows.map(({ part }) => part);
  };

  return {
    async facts({ table, partition }, quietSeconds) {
      // Of the hosts of a cluster that one counts which needs it most.
      const [row] = await rowsOf<
        Omit<PartitionFacts, "quietSeconds" | "freeBytes" | "unmerged" | "masked" | "recompress"> & {
          unmerged: number;
          masked: number;
          recompress: number;
          free_bytes: number;
        }
      >(
        `SELECT max(parts) AS parts, max(all_rows) AS rows, max(bytes) AS bytes, min(largest) AS largestBytes,
            max(unmerged) AS unmerged, max(masked) AS masked, max(recompress) AS recompress,
            max(recent_inserts) AS recentInserts, max(recent_rows) AS recentRows,
            (SELECT min(unreserved_space) FROM ${system("disks")}) AS free_bytes
          FROM (SELECT hostName() AS host, tcpPort() AS port, countIf(active) AS parts, sumIf(rows, active) AS all_rows,
              sumIf(bytes_on_disk, active) AS bytes, maxIf(bytes_on_disk, active) AS largest,
              maxIf(level = 0, active) AS unmerged, maxIf(has_lightweight_delete, active) AS masked,
              maxIf(${IS_COLD} AND ${IS_FAST_CODEC}, active) AS recompress,
              countIf(${IS_RECENT}) AS recent_inserts, sumIf(rows, ${IS_RECENT}) AS recent_rows
            FROM ${system("parts")}
            WHERE database = currentDatabase() AND table = {table:String} AND partition_id = {partition:String}
            GROUP BY host, port)`,
        { table: localName(table), partition, quiet: quietSeconds },
      );
      if (row === undefined) throw new Error("an aggregation without a row");
      const { free_bytes: freeBytes, unmerged, masked, recompress, ...numbers } = row;
      return {
        ...numbers,
        unmerged: unmerged > 0,
        masked: masked > 0,
        recompress: recompress > 0,
        quietSeconds,
        freeBytes,
      };
    },
    async coldPartitions() {
      const rows = await rowsOf<{ local: string; partition: string }>(
        `SELECT DISTINCT table AS local, partition_id AS partition FROM ${system("parts")}
          WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}
            AND ${IS_COLD} AND ${IS_FAST_CODEC} ORDER BY local, partition`,
        { tables: COLD_TABLES.map(localName) },
      );
      return rows.flatMap(({ local, partition }) => {
        const table = COLD_TABLES.find((name) => localName(name) === local);
        return table === undefined ? [] : [{ table, partition }];
      });
    },
    async merge({ table, partition }, signal) {
      if (!/^[\w-]+$/.test(partition)) throw new TypeError("not the id of a partition");
      // A server of a cluster on which no row of the partition lies would call that an error.
      const told = topology.cluster === null;
      try {
        const before = told ? [] : await partsOf(table, partition, signal);
        await command(
          servers,
          `OPTIMIZE TABLE ${target(table)} PARTITION ID '${partition}' FINAL
            SETTINGS optimize_throw_if_noop = ${told ? 1 : 0}, alter_sync = 2`,
          {},
          signal,
        );
        if (told) return true;
        const after = new Set(await partsOf(table, partition, signal));
        return !before.some((part) => after.has(part));
      } catch (error) {
        if (error instanceof WarehouseError && NOT_MERGED.has(error.causeName)) return false;
        throw error;
      }
    },
    note: (name, { table, partition }, signal) =>
      command(
        client,
        `INSERT INTO compaction_checks (run_id, bucket, key, version, hash, uploaded_at)
          SELECT {run:String}, bucket, key, version, hash, uploaded_at FROM (${recordsOf(table)})`,
        { run: name, partition },
        signal,
      ),
    async compare(name, { table, partition }, signal) {
      const parameters = { run: name, partition };
      const [noted] = await rowsOf<{ n: number }>(`SELECT count() AS n FROM (${NOTED})`, parameters, signal);
      const compared = noted?.n ?? 0;
      const buckets = await rowsOf<{ bucket: number }>(differingBuckets(table), parameters, signal);
      if (buckets.length === 0) return { compared, missing: 0, changed: 0 };
      const [found] = await rowsOf<{ missing: number; changed: number }>(
        differences(table),
        { ...parameters, buckets: buckets.map(({ bucket }) => bucket) },
        signal,
      );
      return { compared, missing: found?.missing ?? 0, changed: found?.changed ?? 0 };
    },
    async deletedSince(table, instant) {
      const [row] = await rowsOf<{ n: number }>(
        `SELECT count() AS n FROM ${system("mutations")} WHERE database = currentDatabase() AND table = {table:String}
            AND (NOT is_done OR create_time >= toDateTime({seconds:UInt32}))`,
        {
          table: localName(table),
          seconds: instant === null ? NEVER : Math.floor(instant / 1_000_000) - MARGIN_SECONDS,
        },
      );
      return (row?.n ?? 0) > 0;
    },
    async notedAt(name) {
      const [row] = await rowsOf<{ n: number; seconds: number }>(
        `SELECT count() AS n, toUnixTimestamp(min(added_at)) AS seconds FROM compaction_checks
          WHERE run_id = {run:String}`,
        { run: name },
      );
      return row === undefined || row.n === 0 ? null : row.seconds * 1_000_000;
    },
    forget: (name) =>
      command(servers, `ALTER TABLE ${target("compaction_checks")} DROP PARTITION {run:String}`, {
        run: name,
      }),
    close: async () => {
      await client.close();
      await servers.close();
    },
  };
}

const COLD_TABLES = ["conversations", "conversation_updates", "handoffs", "messages"] as const;
const IS_COLD = `toUInt32OrZero(partition_id) BETWEEN 1 AND toYYYYMM(now() - INTERVAL ${COLD_DAYS} DAY) - 1`;
const IS_FAST_CODEC = "startsWith(default_compression_codec, 'LZ4')";
// A part that a mutation wrote anew has its version; it brings no new rows.
const IS_RECENT =
  "level = 0 AND data_version = min_block_number AND modification_time > now() - toIntervalSecond({quiet:UInt32})";
