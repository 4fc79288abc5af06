import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { type ClickHouseClient, ClickHouseError } from "@clickhouse/client";
import { ServiceError } from "@conversation-export/runtime";
import { connect, type WarehouseAccess } from "./connection.ts";
import { serverUrls } from "./every-server.ts";
import { onCluster, renderMigration, type Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

export type Migration = { readonly name: string; readonly checksum: string; readonly template: string };
/** `applied`: by this run; of several shards on one at least. */
export type MigrationState = { readonly name: string; readonly state: "applied" | "unchanged" };

type Server = Omit<WarehouseAccess, "application">;

const FOLDER = new URL("../migrations/", import.meta.url);
const NAME = /^\d{4}-[a-z0-9-]+\.sql$/;
/** A lock that is older belongs to a run that died. */
const LOCK_SECONDS = 600;

/** The migration files in their order. */
export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(FOLDER)).filter((name) => NAME.test(name)).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const template = await readFile(new URL(name, FOLDER), "utf8");
    migrations.push({ name, checksum: createHash("sha256").update(template).digest("hex"), template });
  }
  return migrations;
}

async function ensureDatabase({ url, ca }: Server, topology: Topology): Promise<void> {
  const database = decodeURIComponent(new URL(url).pathname.slice(1));
  if (!/^\w+$/.test(database)) {
    throw new ServiceError(
      "config",
      "the ClickHouse URL names no database: http://user:password@host:port/database",
    );
  }
  const server = new URL(url);
  server.pathname = "/";
  const client = connect({ url: server.href, ca, application: "migrate" });
  try {
    await client.command({
      query: `CREATE DATABASE IF NOT EXISTS ${database} ${onCluster(topology)}`,
    });
  } finally {
    await client.close();
  }
}

function locked(): ServiceError {
  return new ServiceError("migration_locked", "another migration runs; try again", { retryable: true });
}

async function withLock<T>(client: ClickHouseClient, topology: Topology, work: () => Promise<T>): Promise<T> {
  const owner = randomUUID();
  // With Keeper statements for the cluster are in one order on all servers: the lock is everywhere or nowhere.
  const on = onCluster(topology);
  const held = await client.query({
    query: `SELECT dateDiff('second', metadata_modification_time, now()) AS age FROM system.tables
      WHERE database = currentDatabase() AND name = 'schema_lock'`,
    format: "JSONEachRow",
  });
  const [lock] = await held.json<{ age: number | string }>();
  if (lock !== undefined) {
    if (Number(lock.age) < LOCK_SECONDS) throw locked();
    await client.command({ query: `DROP TABLE IF EXISTS schema_lock ${on}` });
  }
  try {
    // Creating a table without IF NOT EXISTS succeeds for one of several at once.
    await client.command({
      query: `CREATE TABLE schema_lock ${on} (owner String) ENGINE = Memory COMMENT '${owner}'`,
    });
  } catch (error) {
    throw error instanceof ClickHouseError && error.type === "TABLE_ALREADY_EXISTS" ? locked() : error;
  }
  try {
    return await work();
  } finally {
    await client.command({ query: `DROP TABLE IF EXISTS schema_lock ${on}` });
  }
}

/**
 * Of every migration that the servers together have noted its checksum. Parameters: none. With Keeper one server alone
 * notes a migration that it has sent to all; without, each notes its own.
 */
export const appliedSql = (topology: Topology): string => {
  const noted =
    onCluster(topology) === ""
      ? "schema_migrations"
      : `clusterAllReplicas('${topology.cluster}', currentDatabase(), 'schema_migrations')`;
  return `SELECT name, argMax(checksum, applied_at) AS checksum FROM ${noted} GROUP BY name ORDER BY name`;
};

async function appliedChecksums(client: ClickHouseClient, topology: Topology): Promise<Map<string, string>> {
  const result = await client.query({
    query: appliedSql(topology),
    format: "JSONEachRow",
  });
  const rows = await result.json<{ name: string; checksum: string }>();
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

/** Applies to one server, or with `ON CLUSTER` to all, what is missing; gives the names of what it has applied. */
async function migrateServer(
  server: Server,
  topology: Topology,
  migrations: readonly Migration[],
  onApplied: (name: string) => void,
): Promise<ReadonlySet<string>> {
  await ensureDatabase(server, topology);
  const client = connect({ url: server.url, ca: server.ca, application: "migrate" });
  try {
    await client.command({
      query: `CREATE TABLE IF NOT EXISTS schema_migrations ${onCluster(topology)}
        (name String, checksum String, applied_at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY name`,
    });
    return await withLock(client, topology, async () => {
      const applied = await appliedChecksums(client, topology);
      const now = new Set<string>();
      for (const { name, checksum, template } of migrations) {
        const known = applied.get(name);
        if (known !== undefined && known !== checksum) {
          throw new ServiceError("migration_changed", `${name} differs from the one that was applied`);
        }
        if (known !== undefined) continue;
        for (const statement of renderMigration(template, topology))
          await client.command({ query: statement });
        await client.insert({
          table: "schema_migrations",
          values: [{ name, checksum, applied_at: new Date().toISOString() }],
          format: "JSONEachRow",
          clickhouse_settings: { async_insert: 0 },
        });
        onApplied(name);
        now.add(name);
      }
      return now;
    });
  } finally {
    await client.close();
  }
}

/**
 * Applies the migrations that have not been applied, in order, under a lock. Statements are idempotent, so a
 * run that died is repaired by the next. Of several shards without Keeper each is migrated by itself, one after the
 * other: a run that stops between them is completed by the next, and a new shard gets everything. Throws `ServiceError`,
 * with code `migration_changed` when a file is no longer the one that was applied; of several shards it names the one.
 */
export async function migrate(
  deps: Server & {
    readonly topology?: Topology;
    /** `shard`: its address, when there are several. */
    readonly onApplied?: (name: string, shard?: string) => void;
  },
): Promise<MigrationState[]> {
  const topology = deps.topology ?? { cluster: null };
  const migrations = await readMigrations();
  const applied = new Set<string>();
  for (const [index, url] of serverUrls(deps.url, topology).entries()) {
    const shard = topology.shards?.[index];
    try {
      const onApplied = (name: string): void => deps.onApplied?.(name, shard);
      const now = await migrateServer({ url, ca: deps.ca }, topology, migrations, onApplied);
      for (const name of now) applied.add(name);
    } catch (error) {
      throw ofShard(error, shard);
    }
  }
  return migrations.map(({ name }) => ({ name, state: applied.has(name) ? "applied" : "unchanged" }));
}

function ofShard(error: unknown, shard: string | undefined): ServiceError {
  if (!(error instanceof ServiceError)) return toWarehouseError(error, shard);
  if (shard === undefined) return error;
  const { code, message, retryable } = error;
  return new ServiceError(code, `${shard}: ${message}`, { retryable, cause: error });
}
