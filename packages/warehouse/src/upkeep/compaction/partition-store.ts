import type { Micros, PartitionFacts, WindowTable } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import { withoutUpload } from "../../tables/row-content.ts";
import { WarehouseError } from "../../session/warehouse-error.ts";

export type Partition = { readonly table: WindowTable; readonly partition: string };

/**
 * `missing`: noted records that are gone. `changed`: records whose version went back, or whose content
 * differs without a later upload. Rows that a writer has inserted again, with the same or corrected content,
 * do not count.
 */
export type Comparison = { readonly compared: number; readonly missing: number; readonly changed: number };

/**
 * Merges and checks partitions of the record tables.
 *
 * @throws WarehouseError from every method
 */
export type PartitionStore = {
  facts(partition: Partition, quietSeconds: number): Promise<PartitionFacts>;
  /** Partitions old enough for the smaller codec that still have parts with the fast one. */
  coldPartitions(): Promise<readonly Partition[]>;
  /** Merges a partition to one part. false: merges are stopped, or other merges occupy the partition. */
  merge(partition: Partition, signal?: AbortSignal): Promise<boolean>;
  /** Stores keys, versions and hashes of the readable records under the name of the run. */
  note(run: string, partition: Partition, signal?: AbortSignal): Promise<void>;
  /**
   * Compares the noted records with the readable ones. An incomplete note is compared as far as it goes.
   */
  compare(run: string, partition: Partition, signal?: AbortSignal): Promise<Comparison>;
  /**
   * true: a deletion in the table is running, or began at or after `instant` (µs; null: only running ones
   * count).
   */
  deletedSince(table: WindowTable, instant: Micros | null): Promise<boolean>;
  /** When the run noted the records, by ClickHouse's clock, µs in whole seconds; null: not yet. */
  notedAt(run: string): Promise<Micros | null>;
  forget(run: string): Promise<void>;
};

/** Age of recompression; equals the TTL of the tables in the migrations. */
const COLD_DAYS = 365;

/** A short deletion may begin slightly before the note that it invalidates. */
const MARGIN_SECONDS = 5;
/** The last second of a DateTime. */
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

// Errors when merges are stopped or cancelled, or when other merges prevent this one.
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

/** @param deps.session of the user for jobs */
export function createPartitionStore(deps: { readonly session: Session }): PartitionStore {
  const session = deps.session.with({
    timeoutMs: 3_600_000,
    settings: {
      async_insert: 0,
      output_format_json_quote_64bit_integers: 0,
      do_not_merge_across_partitions_select_final: 1,
      join_use_nulls: 0,
    },
  });
  const { cluster, local: localName, target, system } = session.names;

  /** The active parts of all servers. */
  const partsOf = async (
    table: WindowTable,
    partition: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> => {
    const rows = await session.rows<{ part: string }>(
      "partitions.parts",
      `SELECT concat(hostName(), ':', toString(tcpPort()), ' ', name) AS part FROM ${system("parts")}
        WHERE active AND database = currentDatabase() AND table = {table:String} AND partition_id = {partition:String}`,
      { parameters: { table: localName(table), partition }, signal },
    );
    return rows.map(({ part }) => part);
  };

  return {
    async facts({ table, partition }, quietSeconds) {
      // On a cluster: the values of the server that needs a merge the most.
      const [row] = await session.rows<
        Omit<PartitionFacts, "quietSeconds" | "freeBytes" | "unmerged" | "masked" | "recompress"> & {
          unmerged: number;
          masked: number;
          recompress: number;
          free_bytes: number;
        }
      >(
        "partitions.facts",
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
        { parameters: { table: localName(table), partition, quiet: quietSeconds } },
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
      const rows = await session.rows<{ local: string; partition: string }>(
        "partitions.cold",
        `SELECT DISTINCT table AS local, partition_id AS partition FROM ${system("parts")}
          WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}
            AND ${IS_COLD} AND ${IS_FAST_CODEC} ORDER BY local, partition`,
        { parameters: { tables: COLD_TABLES.map(localName) } },
      );
      return rows.flatMap(({ local, partition }) => {
        const table = COLD_TABLES.find((name) => localName(name) === local);
        return table === undefined ? [] : [{ table, partition }];
      });
    },
    async merge({ table, partition }, signal) {
      if (!/^[\w-]+$/.test(partition)) throw new TypeError("not the id of a partition");
      // Not on a cluster: a server without rows of the partition would fail. There, the parts are compared
      // instead.
      const throwsIfNoop = cluster === null;
      try {
        const before = throwsIfNoop ? [] : await partsOf(table, partition, signal);
        await session.commandEverywhere(
          "partitions.merge",
          `OPTIMIZE TABLE ${target(table)} PARTITION ID '${partition}' FINAL
            SETTINGS optimize_throw_if_noop = ${throwsIfNoop ? 1 : 0}, alter_sync = 2`,
          { signal },
        );
        if (throwsIfNoop) return true;
        const after = new Set(await partsOf(table, partition, signal));
        return !before.some((part) => after.has(part));
      } catch (error) {
        if (error instanceof WarehouseError && NOT_MERGED.has(error.causeName)) return false;
        throw error;
      }
    },
    note: (name, { table, partition }, signal) =>
      session.command(
        "partitions.note",
        `INSERT INTO compaction_checks (run_id, bucket, key, version, hash, uploaded_at)
          SELECT {run:String}, bucket, key, version, hash, uploaded_at FROM (${recordsOf(table)})`,
        { parameters: { run: name, partition }, signal },
      ),
    async compare(name, { table, partition }, signal) {
      const parameters = { run: name, partition };
      const [noted] = await session.rows<{ n: number }>(
        "partitions.count_noted",
        `SELECT count() AS n FROM (${NOTED})`,
        { parameters, signal },
      );
      const compared = noted?.n ?? 0;
      const buckets = await session.rows<{ bucket: number }>(
        "partitions.differing_buckets",
        differingBuckets(table),
        { parameters, signal },
      );
      if (buckets.length === 0) return { compared, missing: 0, changed: 0 };
      const [found] = await session.rows<{ missing: number; changed: number }>(
        "partitions.differences",
        differences(table),
        { parameters: { ...parameters, buckets: buckets.map(({ bucket }) => bucket) }, signal },
      );
      return { compared, missing: found?.missing ?? 0, changed: found?.changed ?? 0 };
    },
    async deletedSince(table, instant) {
      const [row] = await session.rows<{ n: number }>(
        "partitions.deletions",
        `SELECT count() AS n FROM ${system("mutations")} WHERE database = currentDatabase() AND table = {table:String}
            AND (NOT is_done OR create_time >= toDateTime({seconds:UInt32}))`,
        {
          parameters: {
            table: localName(table),
            seconds: instant === null ? NEVER : Math.floor(instant / 1_000_000) - MARGIN_SECONDS,
          },
        },
      );
      return (row?.n ?? 0) > 0;
    },
    async notedAt(name) {
      const [row] = await session.rows<{ n: number; seconds: number }>(
        "partitions.noted_at",
        `SELECT count() AS n, toUnixTimestamp(min(added_at)) AS seconds FROM compaction_checks
          WHERE run_id = {run:String}`,
        { parameters: { run: name } },
      );
      return row === undefined || row.n === 0 ? null : row.seconds * 1_000_000;
    },
    forget: (name) =>
      session.commandEverywhere(
        "partitions.forget",
        `ALTER TABLE ${target("compaction_checks")} DROP PARTITION {run:String}`,
        { parameters: { run: name } },
      ),
  };
}

const COLD_TABLES = ["conversations", "conversation_updates", "handoffs", "messages"] as const;
const IS_COLD = `toUInt32OrZero(partition_id) BETWEEN 1 AND toYYYYMM(now() - INTERVAL ${COLD_DAYS} DAY) - 1`;
const IS_FAST_CODEC = "startsWith(default_compression_codec, 'LZ4')";
// Excludes parts rewritten by a mutation, which have its data version: they contain no new rows.
const IS_RECENT =
  "level = 0 AND data_version = min_block_number AND modification_time > now() - toIntervalSecond({quiet:UInt32})";
