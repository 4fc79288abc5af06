import { text } from "node:stream/consumers";
import { type ClientUser, readClientUsers } from "../analytics/client-users.ts";
import { KNOWS_LOGIN, NOT_FOR_CLIENTS } from "../analytics/left-out-sql.ts";
import { ANALYTICS_VIEWS, analyticsDatabase } from "../analytics/views.ts";
import type { WarehouseAccess } from "../session/connection.ts";
import { serverUrls } from "../session/server-urls.ts";
import { createSession, type StatementName } from "../session/session.ts";
import { appliedChecksums, readMigrations } from "./migrate.ts";
import { statesOfMigrations } from "./schema-states.ts";
import type { Topology } from "./migration-template.ts";
import { UNFINISHED } from "../access/request-rows.ts";
import { FIRST_SECRET } from "../upkeep/erasure/suppression-store.ts";

export type UserQuota = {
  readonly name: string;
  /** Counts by `x-clickhouse-quota`. */
  readonly byKey: boolean;
  readonly ofTime: boolean;
};
/** `isFixed`: no query may change it. */
export type ChangedSetting = { readonly name: string; readonly value: string; readonly isFixed: boolean };
export type ReplicaCounts = { readonly least: number; readonly most: number };
export type ReplicaState = {
  readonly server: string;
  /** Tables that take no rows: no session with Keeper. */
  readonly readOnly: number;
  /** Answering replicas of the table with the fewest, and all. */
  readonly active: number;
  readonly total: number;
  readonly behindSeconds: number;
};

export type Inspector = ReturnType<typeof createInspector>;

const TIMEOUT_MS = 10_000;
const MAX_ROWS = 10;
/** More than export-api ever reads. */
const COUNTED_ROWS = 50_000;
const QUOTA_KEY = "export-ops-doctor";

/** @throws WarehouseError from every method */
export function createInspector(deps: WarehouseAccess & { readonly topology: Topology }) {
  const { topology } = deps;
  const own = createSession({ ...deps, maxConnections: 4 });
  // Otherwise a profile that caches answers refuses system tables.
  const ofProfile = createSession({
    ...deps,
    settings: { query_cache_system_table_handling: "ignore" },
    maxConnections: 1,
  });
  const session = own.with({ timeoutMs: TIMEOUT_MS });
  const profiled = ofProfile.with({ timeoutMs: TIMEOUT_MS });
  const { system } = session.names;

  const settingsThat = async (
    name: StatementName,
    condition: string,
    names: readonly string[],
  ): Promise<string[]> => {
    const rows = await profiled.rows<{ name: string }>(
      name,
      `SELECT name FROM system.settings WHERE name IN {names:Array(String)} AND ${condition}
         ORDER BY name`,
      { parameters: { names }, settings: { output_format_json_array_of_rows: 0 } },
    );
    return rows.map((row) => row.name);
  };

  async function appliedOn(url: string): Promise<ReadonlyMap<string, string>> {
    const { ca, application } = deps;
    const address = topology.shards === undefined ? undefined : new URL(url).origin;
    const server = createSession({ url, ca, application, maxConnections: 1, address });
    const asked = server.with({ timeoutMs: TIMEOUT_MS });
    try {
      const there = await asked.rows(
        "schema.is_there",
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND name = 'schema_migrations'",
      );
      return there.length === 0 ? new Map() : await appliedChecksums(asked, "schema.applied", topology);
    } finally {
      await server.close();
    }
  }

  return {
    /** `aheadMs`: of the server, within `uncertainMs`. */
    async clock() {
      const [before, timer] = [Date.now(), performance.now()];
      const rows = await session.rows<{ version: string; ms: string }>(
        "inspect.clock",
        "SELECT version() AS version, toString(toUnixTimestamp64Milli(now64(3))) AS ms",
      );
      const tookMs = performance.now() - timer;
      const aheadMs = Number(rows[0]?.ms) - (before + tookMs / 2);
      return { version: rows[0]?.version ?? "", aheadMs, uncertainMs: tookMs / 2 };
    },
    async schema() {
      const files = await readMigrations();
      const ofServers = await Promise.all(serverUrls(deps.url, topology).map(appliedOn));
      return statesOfMigrations(files, ofServers);
    },
    /** In the syntax of GRANT, such as `SELECT, INSERT` and `system.parts`. */
    async may(privileges: string, on: string): Promise<boolean> {
      // CHECK GRANT allows no FORMAT clause.
      const answer = await session.stream("inspect.grants", `CHECK GRANT ${privileges} ON ${on}`);
      return (await text(answer)).trim() === "1";
    },
    async grants() {
      const rows = await session.rows<Record<string, string>>("inspect.all_grants", "SHOW GRANTS FINAL");
      return rows.flatMap((row) => Object.values(row));
    },
    async settings(names: readonly string[]): Promise<Readonly<Record<string, string>>> {
      // One query each: the user may not read system.settings.
      const entries = await Promise.all(
        names.map(async (name): Promise<[string, string]> => {
          const rows = await session.rows<{ value: string }>(
            "inspect.setting",
            "SELECT toString(getSetting({name:String})) AS value",
            { parameters: { name } },
          );
          return [name, rows[0]?.value ?? ""];
        }),
      );
      return Object.fromEntries(entries);
    },
    /** By the user's profile, to other values than ClickHouse's. */
    async changedSettings(names: readonly string[]): Promise<ChangedSetting[]> {
      // Raw: the profile may change how rows are written.
      const answer = await profiled.stream(
        "inspect.changed_settings",
        `SELECT toJSONString(arraySort(groupArray([name, value, toString(readonly)]))) FROM system.settings
         WHERE name IN {names:Array(String)} AND value != default FORMAT RawBLOB`,
        { parameters: { names }, settings: { limit: "0", offset: "0" } },
      );
      const rows = JSON.parse(await text(answer)) as [name: string, value: string, fixed: string][];
      const changed = rows.map(([name, value, fixed]) => ({ name, value, isFixed: fixed === "1" }));
      // No statement can read these two: it takes them for its own.
      const counted = await profiled.rows<{ n: number }>(
        "inspect.limits",
        `SELECT toUInt32(number) AS n FROM numbers(${COUNTED_ROWS})`,
        { settings: { output_format_json_array_of_rows: 0 } },
      );
      const offset = counted[0]?.n ?? COUNTED_ROWS;
      const isCut = counted.length < COUNTED_ROWS - offset;
      return [
        ...changed,
        ...(isCut ? [{ name: "limit", value: String(counted.length), isFixed: false }] : []),
        ...(offset > 0 ? [{ name: "offset", value: String(offset), isFixed: false }] : []),
      ];
    },
    /** That the user's queries may change, or with another value than the default. */
    looseSettings: (names: readonly string[]): Promise<string[]> =>
      settingsThat("inspect.loose_settings", "(readonly = 0 OR value != default)", names),
    raisableSettings: (names: readonly string[]): Promise<string[]> =>
      settingsThat("inspect.raisable_settings", "readonly = 0 AND max IS NULL", names),
    /** 1: a single server; 0: an unknown cluster. */
    async replicas(): Promise<ReplicaCounts> {
      if (topology.cluster === null) return { least: 1, most: 1 };
      const [row] = await session.rows<ReplicaCounts>(
        "inspect.replicas",
        `SELECT min(servers) AS least, max(servers) AS most
         FROM (SELECT count() AS servers FROM system.clusters WHERE cluster = {cluster:String} GROUP BY shard_num)`,
        { parameters: { cluster: topology.cluster } },
      );
      return row ?? { least: 1, most: 1 };
    },
    replicaStates: (): Promise<ReplicaState[]> =>
      session.rows(
        "inspect.replica_states",
        `SELECT hostName() AS server, countIf(is_readonly) AS readOnly, min(active_replicas) AS active,
           max(total_replicas) AS total, max(absolute_delay) AS behindSeconds
         FROM ${system("replicas")} WHERE database = currentDatabase() GROUP BY server ORDER BY server`,
      ),
    async quotas(): Promise<UserQuota[]> {
      const rows = await session.rows<{ name: string; key: string; timed: boolean | number }>(
        "inspect.quotas",
        `SELECT quota_name AS name, any(quota_key) AS key, max(max_execution_time IS NOT NULL) AS timed
         FROM system.quota_usage WHERE duration IS NOT NULL GROUP BY name ORDER BY name`,
        { quotaKey: QUOTA_KEY },
      );
      return rows.map(({ name, key, timed }) => ({ name, byKey: key === QUOTA_KEY, ofTime: Boolean(timed) }));
    },
    clientUsers: (): Promise<ClientUser[] | null> => readClientUsers(session),
    /** Missing, with other columns, or for a server that differs in `authenticatedUser`. */
    async wrongViews(): Promise<string[]> {
      const database = analyticsDatabase(decodeURIComponent(new URL(deps.url).pathname.slice(1)));
      const rows = await session.rows<{ view: string; name: string }>(
        "inspect.views",
        `SELECT table AS view, name FROM system.columns WHERE database = {database:String} AND table NOT IN (
           SELECT name FROM system.tables WHERE database = {database:String}
             AND position(create_table_query, if(${KNOWS_LOGIN}, {older:String}, 'authenticatedUser(')) > 0)
         ORDER BY position`,
        { parameters: { database, older: NOT_FOR_CLIENTS } },
      );
      const found = Map.groupBy(rows, ({ view }) => view);
      const namesOf = (columns: readonly { readonly name: string }[] = []): string =>
        columns.map(({ name }) => name).join();
      return ANALYTICS_VIEWS.flatMap(({ name, columns }) =>
        namesOf(found.get(name)) === namesOf(columns) ? [] : [name],
      );
    },
    async disks() {
      const rows = await session.rows<{ name: string; free: string; total: string }>(
        "inspect.disks",
        `SELECT name, toString(unreserved_space) AS free, toString(total_space) AS total FROM ${system("disks")}`,
      );
      return rows.map(({ name, free, total }) => ({
        name,
        freeBytes: Number(free),
        totalBytes: Number(total),
      }));
    },
    async stuckMutations() {
      return session.rows<{ table: string; id: string; reason: string }>(
        "inspect.mutations",
        `SELECT table, mutation_id AS id, latest_fail_reason AS reason FROM ${system("mutations")}
         WHERE database = currentDatabase() AND NOT is_done AND latest_fail_reason != ''
         ORDER BY create_time LIMIT ${MAX_ROWS}`,
      );
    },
    async crowdedPartitions(parts: number) {
      return session.rows<{ table: string; partition: string; parts: number }>(
        "inspect.parts",
        `SELECT table, partition, count() AS parts FROM ${system("parts")}
         WHERE database = currentDatabase() AND active
         GROUP BY hostName(), tcpPort(), table, partition HAVING parts > {parts:UInt32} ORDER BY parts DESC LIMIT ${MAX_ROWS}`,
        { parameters: { parts } },
      );
    },
    async suppressionSecret(): Promise<string | null> {
      const rows = await session.rows<{ value: string }>("inspect.secret", FIRST_SECRET);
      return rows[0]?.value ?? null;
    },
    async openRequests() {
      const [row] = await session.rows<{ requests: number; age: number }>(
        "inspect.requests",
        `SELECT count() AS requests, max(dateDiff('millisecond', received_at, now64(3))) AS age
         FROM data_subject_requests FINAL WHERE ${UNFINISHED}`,
      );
      return { count: row?.requests ?? 0, oldestAgeMs: row?.age ?? 0 };
    },
    close: async (): Promise<void> => {
      await Promise.all([own.close(), ofProfile.close()]);
    },
  };
}
