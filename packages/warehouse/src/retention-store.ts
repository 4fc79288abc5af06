import { randomUUID } from "node:crypto";
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import type { Micros } from "@conversation-export/domain";
import { type ConnectionOptions, connect, type WarehouseAccess } from "./connection.ts";
import { createDeletion } from "./deletion.ts";
import { createEveryServer } from "./every-server.ts";
import { createJobKeys } from "./job-keys.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** Records of the client that are older than the instant are expired. */
export type Cutoff = { readonly clientId: string; readonly before: Micros };

/**
 * What is expired at one moment. Conversations with their handoffs and updates, and messages, by their creation; end
 * users by the latest update that any of their versions tells, for a profile lives as long as its person comes back.
 */
export type Expired = {
  /** Stored rows, superseded and hidden ones included. */
  count(table: RetentionTable, signal?: AbortSignal): Promise<{ clientId: string; rows: number }[]>;
  /**
   * Removes the bytes of these rows from all active parts. `dropped`: rows that went with parts which held nothing
   * else; the others were cut out of theirs.
   */
  erase(table: RetentionTable, signal?: AbortSignal): Promise<{ dropped: number }>;
  /** Forgets which end users were found; nothing can be asked any more. */
  end(): Promise<void>;
};

/** Throws `WarehouseError`. */
export type RetentionStore = {
  /** ClickHouse's clock in milliseconds. */
  serverTime(): Promise<number>;
  expired(cutoffs: readonly Cutoff[], signal?: AbortSignal): Promise<Expired>;
  close(): Promise<void>;
};

/**
 * In this order: a record that readers see goes before what hangs on it, and landed events of end users before these,
 * so that a run that dies is carried on by the next.
 */
export const RETENTION_TABLES = [
  "conversations",
  "conversation_updates",
  "handoffs",
  "messages",
  "landing",
  "end_users",
] as const;
export type RetentionTable = (typeof RETENTION_TABLES)[number];

/** Before the name of a run in everything that it notes. */
const PREFIX = "retention-";
/** Longer than a batch of ingest is on its way with one instant of upload. */
const ON_THE_WAY = "INTERVAL 10 MINUTE";

const OLDER = (column: string): string =>
  `client_id IN {clients:Array(String)}
    AND ${column} < fromUnixTimestamp64Micro({latest:Int64}, 'UTC')
    AND toUnixTimestamp64Micro(${column}) < {cutoffs:Array(Int64)}[indexOf({clients:Array(String)}, client_id)]`;
const KEYS = "(SELECT client_id, id FROM job_keys WHERE run_id = {run:String} AND kind = 'end_user')";

const CONDITIONS: Readonly<Record<RetentionTable, string>> = {
  conversations: OLDER("date_created"),
  conversation_updates: OLDER("date_created"),
  handoffs: OLDER("conversation_date_created"),
  messages: OLDER("date_created"),
  landing: `(type != 'end_user.exported' AND ${OLDER("date_created")})
    OR (type = 'end_user.exported' AND (client_id, record_id) IN ${KEYS}
      AND uploaded_at < fromUnixTimestamp64Micro({settled:Int64}, 'UTC'))`,
  // A newer update that has come meanwhile stays.
  end_users: `${OLDER("date_updated")} AND (client_id, end_user_id) IN ${KEYS}`,
};

/** A row that was hidden and is not gone counts. */
const WITH_HIDDEN: ClickHouseSettings = { apply_deleted_mask: 0 };
/** Of who is to be seen at all, hidden rows say nothing. */
const LATEST_UPDATE = "if(max(_row_exists) = 1, maxIf(date_updated, _row_exists = 1), max(date_updated))";

/** `url`: `http://user:password@host:port/database` of the user for jobs. */
export const createRetentionStore = (
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): RetentionStore => {
  const connection: ConnectionOptions = {
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 3_600_000,
    // A projection still shows rows that are masked in its table.
    settings: { output_format_json_quote_64bit_integers: 0, optimize_use_projections: 0 },
  };
  const client: ClickHouseClient = connect(connection);
  const servers = createEveryServer({ ...connection, topology: deps.topology });
  const { cluster } = deps.topology;
  const deletion = createDeletion(deps);
  const jobKeys = createJobKeys({ client, servers, topology: deps.topology });
  const withSignal = (signal: AbortSignal | undefined) =>
    signal === undefined ? {} : { abort_signal: signal };

  const select = async <Row>(
    query: string,
    parameters: object,
    signal?: AbortSignal,
    settings: ClickHouseSettings = {},
  ): Promise<Row[]> => {
    const result = await client.query({
      query,
      query_params: { ...parameters },
      clickhouse_settings: settings,
      format: "JSONEachRow",
      ...withSignal(signal),
    });
    return result.json<Row>();
  };

  const isGone = (error: unknown): boolean => toWarehouseError(error).causeName === "NO_SUCH_DATA_PART";

  /** Drops parts of which every row is expired. A part never changes, so nothing that comes meanwhile goes with it. */
  const dropParts = async (
    table: RetentionTable,
    parameters: object,
    signal: AbortSignal | undefined,
  ): Promise<number> => {
    const parts = await select<{ name: string; rows: number }>(
      `SELECT name, rows FROM system.parts
       WHERE database = currentDatabase() AND table = {table:String} AND active AND rows > 0
         AND (name, rows) IN (SELECT _part, count() FROM ${table} WHERE ${CONDITIONS[table]} GROUP BY _part)`,
      { ...parameters, table },
      signal,
      WITH_HIDDEN,
    );
    let dropped = 0;
    for (const { name, rows } of parts) {
      signal?.throwIfAborted();
      try {
        await client.command({
          query: `ALTER TABLE ${table} DROP PART {name:String}`,
          query_params: { name },
          ...withSignal(signal),
        });
        dropped += rows;
      } catch (error) {
        // Merged meanwhile: its rows are cut out of the part that has them now.
        if (!isGone(error)) throw error;
      }
    }
    return dropped;
  };

  /** Where hidden rows can be told apart: a distributed table does not know them. */
  const rowsOf = (table: RetentionTable): string =>
    cluster === null ? table : `clusterAllReplicas('${cluster}', currentDatabase(), '${table}_local')`;

  /** Hidden rows are no rows for a deletion: their parts are rewritten without them. */
  const dropHidden = async (
    table: RetentionTable,
    parameters: object,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const partitions = await select<{ id: string }>(
      `SELECT DISTINCT _partition_id AS id FROM ${rowsOf(table)} WHERE _row_exists = 0 AND (${CONDITIONS[table]})`,
      parameters,
      signal,
      WITH_HIDDEN,
    );
    for (const { id } of partitions) {
      signal?.throwIfAborted();
      await deletion.dropMasked(table, id, signal);
    }
  };

  return {
    serverTime: async () => {
      try {
        const [row] = await select<{ ms: number }>(
          "SELECT toFloat64(toUnixTimestamp64Milli(now64(3))) AS ms",
          {},
        );
        if (row === undefined) throw new Error("a SELECT without a row");
        return row.ms;
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    expired: async (cutoffs, signal) => {
      const run = `${PREFIX}${randomUUID()}`;
      const parameters = {
        run,
        clients: cutoffs.map(({ clientId }) => clientId),
        cutoffs: cutoffs.map(({ before }) => before),
        latest: Math.max(0, ...cutoffs.map(({ before }) => before)),
      };
      try {
        const [clock] = await select<{ settled: number }>(
          `SELECT toUnixTimestamp64Micro(now64(6) - ${ON_THE_WAY}) AS settled`,
          {},
          signal,
        );
        await jobKeys.forgetLeft(PREFIX);
        const all = { ...parameters, settled: clock?.settled ?? 0 };
        await client.command({
          query: `INSERT INTO job_keys (run_id, kind, client_id, id)
            SELECT {run:String}, 'end_user', client_id, end_user_id FROM ${rowsOf("end_users")}
            WHERE client_id IN {clients:Array(String)}
            GROUP BY client_id, end_user_id
            HAVING toUnixTimestamp64Micro(${LATEST_UPDATE}) < {cutoffs:Array(Int64)}[indexOf({clients:Array(String)}, client_id)]
              AND max(uploaded_at) < fromUnixTimestamp64Micro({settled:Int64}, 'UTC')`,
          query_params: all,
          clickhouse_settings: { async_insert: 0, ...WITH_HIDDEN },
          ...withSignal(signal),
        });
        return {
          count: async (table, countSignal) => {
            try {
              return await select<{ clientId: string; rows: number }>(
                `SELECT client_id AS clientId, count() AS rows FROM ${table} WHERE ${CONDITIONS[table]}
                 GROUP BY client_id ORDER BY client_id`,
                all,
                countSignal,
                WITH_HIDDEN,
              );
            } catch (error) {
              throw toWarehouseError(error);
            }
          },
          erase: async (table, eraseSignal) => {
            try {
              // On a cluster every server has parts of its own under the same names.
              const dropped = cluster === null ? await dropParts(table, all, eraseSignal) : 0;
              await deletion.erase({ table, condition: CONDITIONS[table], parameters: all }, eraseSignal);
              await dropHidden(table, all, eraseSignal);
              return { dropped };
            } catch (error) {
              throw toWarehouseError(error);
            }
          },
          end: async () => {
            try {
              await jobKeys.forget(run);
            } catch (error) {
              throw toWarehouseError(error);
            }
          },
        };
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: async () => {
      await deletion.close();
      await servers.close();
      await client.close();
    },
  };
};
