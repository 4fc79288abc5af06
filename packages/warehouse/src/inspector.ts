import { text } from "node:stream/consumers";
import type { ClickHouseClient } from "@clickhouse/client";
import { clusterNames } from "./cluster-names.ts";
import { connect, type WarehouseAccess } from "./connection.ts";
import { serverUrls } from "./every-server.ts";
import { appliedSql, readMigrations } from "./migrate.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** `later`: applied by a newer version of this software. */
export type SchemaState = {
  readonly name: string;
  readonly state: "applied" | "pending" | "changed" | "later";
};

export type ServerClock = {
  readonly version: string;
  /** How far the clock of the server is ahead of this process, in milliseconds, and by how much that may be wrong. */
  readonly aheadMs: number;
  readonly uncertainMs: number;
};

export type Disk = { readonly name: string; readonly freeBytes: number; readonly totalBytes: number };
/** A mutation that does not get on. */
export type StuckMutation = { readonly table: string; readonly id: string; readonly reason: string };
export type CrowdedPartition = {
  readonly table: string;
  readonly partition: string;
  readonly parts: number;
};

/** What is to be known about a server and a user of it, to say whether both are as they should be. Throws `WarehouseError`. */
export type Inspector = {
  clock(): Promise<ServerClock>;
  /** The migrations of this software and of the database, in order. Reads only. */
  schema(): Promise<SchemaState[]>;
  /**
   * Whether the user has all privileges. `privileges` and `on` as GRANT has them, without parameters: `SELECT, INSERT`,
   * `system.parts`; `{database}` in `on` stands for the one of the URL.
   */
  may(privileges: string, on: string): Promise<boolean>;
  /** Settings as they hold for the user. */
  settings(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
  disks(): Promise<Disk[]>;
  stuckMutations(): Promise<StuckMutation[]>;
  /** What stands for the secret that the stored suppressions were made with; null: none is stored. */
  suppressionSecret(): Promise<string | null>;
  /** Requests of data subjects that are not finished. */
  openRequests(): Promise<{ readonly count: number; readonly oldestAgeMs: number }>;
  /** Partitions of more than `parts` active parts, the fullest first. */
  crowdedPartitions(parts: number): Promise<CrowdedPartition[]>;
  close(): Promise<void>;
};

const TIMEOUT_MS = 10_000;
const MOST = 10;

/** `url`: `http://user:password@host:port/database` of the user that is looked at. */
export function createInspector(
  deps: WarehouseAccess & {
    readonly topology: Topology;
  },
): Inspector {
  const { topology } = deps;
  const { system } = clusterNames(topology);
  const database = decodeURIComponent(new URL(deps.url).pathname.slice(1));
  const client: ClickHouseClient = connect({ ...deps, maxOpenConnections: 4, requestTimeoutMs: TIMEOUT_MS });

  async function select<T>(query: string, parameters: Record<string, unknown> = {}): Promise<T[]> {
    try {
      const result = await client.query({ query, query_params: parameters, format: "JSONEachRow" });
      return await result.json<T>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  /** Checksums of the migrations that a server has, by name. */
  async function appliedOn(url: string): Promise<ReadonlyMap<string, string>> {
    const server = connect({ ...deps, url, maxOpenConnections: 1, requestTimeoutMs: TIMEOUT_MS });
    try {
      const there = await server.query({
        query:
          "SELECT name FROM system.tables WHERE database = currentDatabase() AND name = 'schema_migrations'",
        format: "JSONEachRow",
      });
      if ((await there.json()).length === 0) return new Map();
      const result = await server.query({ query: appliedSql(topology), format: "JSONEachRow" });
      const rows = await result.json<{ name: string; checksum: string }>();
      return new Map(rows.map(({ name, checksum }) => [name, checksum]));
    } catch (error) {
      throw toWarehouseError(error, topology.shards === undefined ? undefined : new URL(url).origin);
    } finally {
      await server.close();
    }
  }

  return {
    async clock() {
      const [before, timer] = [Date.now(), performance.now()];
      const rows = await select<{ version: string; ms: string }>(
        "SELECT version() AS version, toString(toUnixTimestamp64Milli(now64(3))) AS ms",
      );
      const tookMs = performance.now() - timer;
      const aheadMs = Number(rows[0]?.ms) - (before + tookMs / 2);
      return { version: rows[0]?.version ?? "", aheadMs, uncertainMs: tookMs / 2 };
    },
    async schema() {
      const files = await readMigrations();
      const ofServers = await Promise.all(serverUrls(deps.url, topology).map(appliedOn));
      const all = new Set([...files.map(({ name }) => name), ...ofServers.flatMap((one) => [...one.keys()])]);
      return [...all].sort().map((name): SchemaState => {
        const checksum = files.find((file) => file.name === name)?.checksum;
        if (checksum === undefined) return { name, state: "later" };
        const found = ofServers.map((applied) => applied.get(name));
        if (found.some((one) => one !== undefined && one !== checksum)) return { name, state: "changed" };
        return { name, state: found.includes(undefined) ? "pending" : "applied" };
      });
    },
    async may(privileges, on) {
      const target = on.replace("{database}", `\`${database.replaceAll("`", "")}\``);
      try {
        // It takes no format.
        const { stream } = await client.exec({ query: `CHECK GRANT ${privileges} ON ${target}` });
        return (await text(stream)).trim() === "1";
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    async settings(names) {
      // One query for each: a user may be kept from the table of all settings.
      const entries = await Promise.all(
        names.map(async (name): Promise<[string, string]> => {
          const rows = await select<{ value: string }>(
            "SELECT toString(getSetting({name:String})) AS value",
            {
              name,
            },
          );
          return [name, rows[0]?.value ?? ""];
        }),
      );
      return Object.fromEntries(entries);
    },
    async disks() {
      const rows = await select<{ name: string; free: string; total: string }>(
        `SELECT name, toString(unreserved_space) AS free, toString(total_space) AS total FROM ${system("disks")}`,
      );
      return rows.map(({ name, free, total }) => ({
        name,
        freeBytes: Number(free),
        totalBytes: Number(total),
      }));
    },
    async stuckMutations() {
      return select<StuckMutation>(
        `SELECT table, mutation_id AS id, latest_fail_reason AS reason FROM ${system("mutations")}
         WHERE database = currentDatabase() AND NOT is_done AND latest_fail_reason != ''
         ORDER BY create_time LIMIT ${MOST}`,
      );
    },
    async crowdedPartitions(parts) {
      const rows = await select<{ table: string; partition: string; parts: string | number }>(
        `SELECT table, partition, count() AS parts FROM ${system("parts")}
         WHERE database = currentDatabase() AND active
         GROUP BY hostName(), tcpPort(), table, partition HAVING parts > {parts:UInt32} ORDER BY parts DESC LIMIT ${MOST}`,
        { parts },
      );
      return rows.map((row) => ({ ...row, parts: Number(row.parts) }));
    },
    async suppressionSecret() {
      const rows = await select<{ value: string }>(
        "SELECT value FROM suppressions WHERE kind = 'secret' ORDER BY added_at, value LIMIT 1",
      );
      return rows[0]?.value ?? null;
    },
    async openRequests() {
      const rows = await select<{ requests: string | number; age: string | number }>(
        `SELECT count() AS requests, max(dateDiff('millisecond', received_at, now64(3))) AS age
         FROM data_subject_requests FINAL WHERE status NOT IN ('completed', 'failed')`,
      );
      return { count: Number(rows[0]?.requests ?? 0), oldestAgeMs: Number(rows[0]?.age ?? 0) };
    },
    close: () => client.close(),
  };
}
