import { hash, randomUUID } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import { type EventType, formatTimestampZ, type Micros, versionNumber } from "@conversation-export/domain";
import type { Version } from "@conversation-export/domain";
import { type ConnectionOptions, connect, type WarehouseAccess } from "./connection.ts";
import { createEveryServer } from "./every-server.ts";
import { createJobKeys } from "./job-keys.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** An export of a record, as the bus carried it. */
export type CarriedExport = {
  readonly clientId: string;
  readonly id: string;
  readonly dateCreated: Micros;
  readonly version: Version;
};

/** Up to where the bus was compared: the next offset of each partition, and the end of the last hour, ms. */
export type ReconciledUntil = {
  readonly until: number;
  readonly offsets: readonly { topic: string; partition: number; offset: number }[];
};

/** Throws `WarehouseError`. */
export type ReconcileStore = {
  /**
   * For each export whether its record is readable in this version or a later one, also under another date of creation.
   * Up to about ten thousand at a time.
   */
  readable(type: EventType, exports: readonly CarriedExport[], signal?: AbortSignal): Promise<boolean[]>;
  /**
   * For each export of a record that was erased whether the record is readable in any version, under its own date of
   * creation alone: a later one belongs to a record that may be kept. Nothing that names it is stored meanwhile.
   */
  standing(type: EventType, exports: readonly CarriedExport[], signal?: AbortSignal): Promise<boolean[]>;
  /** Forgets the keys of runs whose process died. */
  forgetLeft(): Promise<void>;
  /** null: nothing was compared yet. */
  loadUntil(): Promise<ReconciledUntil | null>;
  saveUntil(until: ReconciledUntil): Promise<void>;
  close(): Promise<void>;
};

const TABLES: Readonly<Record<EventType, { table: string; id: string; dated: boolean }>> = {
  "conversation.exported": { table: "conversations", id: "conversation_id", dated: true },
  "message.exported": { table: "messages", id: "message_id", dated: true },
  "end_user.exported": { table: "end_users", id: "end_user_id", dated: false },
};

/** Before the name of a run in everything that it notes. */
const PREFIX = "reconcile-";

const hashOf = (id: string): string => hash("sha256", id, "hex");

const nameOf = ({ clientId, id }: Pick<CarriedExport, "clientId" | "id">): string =>
  JSON.stringify([clientId, id]);

type Found = { client: string; id: string; version: string };

/** `url`: `http://user:password@host:port/database`; `now` gives milliseconds since the epoch. */
export const createReconcileStore = (
  deps: WarehouseAccess & {
    readonly topology: Topology;
    readonly now: () => number;
  },
): ReconcileStore => {
  const connection: ConnectionOptions = {
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 600_000,
    // A projection still shows rows that are masked in its table.
    settings: { optimize_use_projections: 0 },
  };
  const client: ClickHouseClient = connect(connection);
  const servers = createEveryServer({ ...connection, topology: deps.topology });

  const jobKeys = createJobKeys({ client, servers, topology: deps.topology });

  type Key = { readonly clientId: string; readonly id: string; readonly dateCreated: Micros };

  /** The answer of a query that finds `keys` in job_keys, which are gone when it is there. */
  const ask = async <Row>(
    keys: readonly Key[],
    query: string,
    signal: AbortSignal | undefined,
  ): Promise<Row[]> => {
    const run = `${PREFIX}${randomUUID()}`;
    const options = signal === undefined ? {} : { abort_signal: signal };
    try {
      await client.insert({
        table: "job_keys",
        values: keys.map((one) => ({
          run_id: run,
          kind: "carried",
          client_id: one.clientId,
          id: one.id,
          date_created: formatTimestampZ(one.dateCreated),
        })),
        format: "JSONEachRow",
        clickhouse_settings: { async_insert: 0 },
        ...options,
      });
      const result = await client.query({
        query,
        query_params: { run },
        format: "JSONEachRow",
        ...options,
      });
      return await result.json<Row>();
    } finally {
      await jobKeys.forget(run);
    }
  };

  /** The latest version of each record by name: under its own date of creation, or under any. */
  const latest = async (
    type: EventType,
    exports: readonly CarriedExport[],
    anyDate: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Map<string, bigint>> => {
    const { table, id, dated } = TABLES[type];
    const keys = new Map(exports.map((one) => [`${nameOf(one)}${one.dateCreated}`, one]));
    const columns = dated && !anyDate ? ["client_id", "date_created", id] : ["client_id", id];
    const wanted = columns.map((column) => (column === id ? "id" : column));
    // Masked rows are left out, and of the others the largest version is what readers see.
    const rows = await ask<Found>(
      [...keys.values()],
      `SELECT client_id AS client, ${id} AS id, toString(max(version)) AS version FROM ${table}
        WHERE (${columns.join(", ")}) GLOBAL IN
          (SELECT ${wanted.join(", ")} FROM job_keys WHERE run_id = {run:String})
        GROUP BY client_id, ${id}`,
      signal,
    );
    return new Map(rows.map((row) => [nameOf({ clientId: row.client, id: row.id }), BigInt(row.version)]));
  };

  return {
    readable: async (type, exports, signal) => {
      if (exports.length === 0) return [];
      const isIn = (versions: ReadonlyMap<string, bigint>, one: CarriedExport): boolean =>
        (versions.get(nameOf(one)) ?? -1n) >= versionNumber(one.version);
      try {
        const here = await latest(type, exports, false, signal);
        const readable = exports.map((one) => isIn(here, one));
        const others = exports.filter((_, index) => readable[index] === false);
        if (others.length === 0 || !TABLES[type].dated) return readable;
        const anywhere = await latest(type, others, true, signal);
        return exports.map((one, index) => readable[index] === true || isIn(anywhere, one));
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    standing: async (type, exports, signal) => {
      if (exports.length === 0) return [];
      const { table, id } = TABLES[type];
      const keys = exports.map((one) => ({ ...one, id: hashOf(one.id) }));
      const ofRun = "FROM job_keys WHERE run_id = {run:String}";
      try {
        const rows = await ask<{ client: string; hash: string; created: string }>(
          keys,
          `SELECT DISTINCT client_id AS client, lower(hex(SHA256(${id}))) AS hash,
              toString(toUnixTimestamp64Micro(date_created)) AS created
            FROM ${table}
            WHERE (client_id, date_created) GLOBAL IN (SELECT client_id, date_created ${ofRun})
              AND (client_id, date_created, hash) GLOBAL IN (SELECT client_id, date_created, id ${ofRun})`,
          signal,
        );
        const found = new Set(rows.map((row) => JSON.stringify([row.client, row.hash, Number(row.created)])));
        return keys.map((one) => found.has(JSON.stringify([one.clientId, one.id, one.dateCreated])));
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    forgetLeft: async () => {
      try {
        await jobKeys.forgetLeft(PREFIX);
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    loadUntil: async () => {
      try {
        const result = await client.query({
          query: `SELECT topic, partition, toString(next_offset) AS offset,
              toString(toUnixTimestamp64Milli(until)) AS until_ms FROM reconciled FINAL`,
          format: "JSONEachRow",
        });
        const rows = await result.json<{
          topic: string;
          partition: number;
          offset: string;
          until_ms: string;
        }>();
        if (rows.length === 0) return null;
        return {
          until: Math.max(...rows.map((row) => Number(row.until_ms))),
          offsets: rows.map(({ topic, partition, offset }) => ({ topic, partition, offset: Number(offset) })),
        };
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    saveUntil: async ({ until, offsets }) => {
      if (offsets.length === 0) return;
      try {
        await client.insert({
          table: "reconciled",
          values: offsets.map(({ topic, partition, offset }) => ({
            topic,
            partition,
            version: deps.now(),
            next_offset: offset,
            until: new Date(until).toISOString(),
          })),
          format: "JSONEachRow",
          clickhouse_settings: { async_insert: 0 },
        });
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: async () => {
      await client.close();
      await servers.close();
    },
  };
};
