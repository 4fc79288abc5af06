import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { type ClickHouseClient, ClickHouseError } from "@clickhouse/client";
import { ServiceError } from "@conversation-export/runtime";
import { connect, type WarehouseAccess } from "./connection.ts";
import { renderMigration, type Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

export type Migration = { readonly name: string; readonly checksum: string; readonly template: string };
/** `applied`: by this run. */
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

async function ensureDatabase({ url, ca }: Server, { cluster }: Topology): Promise<void> {
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
      query: `CREATE DATABASE IF NOT EXISTS ${database}${cluster === null ? "" : ` ON CLUSTER '${cluster}'`}`,
    });
  } finally {
    await client.close();
  }
}

function locked(): ServiceError {
  return new ServiceError("migration_locked", "another migration runs; try again", { retryable: true });
}

async function withLock<T>(client: ClickHouseClient, work: () => Promise<T>): Promise<T> {
  const owner = randomUUID();
  const held = await client.query({
    query: `SELECT dateDiff('second', metadata_modification_time, now()) AS age FROM system.tables
      WHERE database = currentDatabase() AND name = 'schema_lock'`,
    format: "JSONEachRow",
  });
  const [lock] = await held.json<{ age: number | string }>();
  if (lock !== undefined) {
    if (Number(lock.age) < LOCK_SECONDS) throw locked();
    await client.command({ query: "DROP TABLE IF EXISTS schema_lock" });
  }
  try {
    // Creating a table without IF NOT EXISTS succeeds for one of several at once.
    await client.command({
      query: `CREATE TABLE schema_lock (owner String) ENGINE = Memory COMMENT '${owner}'`,
    });
  } catch (error) {
    throw error instanceof ClickHouseError && error.type === "TABLE_ALREADY_EXISTS" ? locked() : error;
  }
  try {
    return await work();
  } finally {
    await client.command({ query: "DROP TABLE IF EXISTS schema_lock" });
  }
}

async function appliedChecksums(client: ClickHouseClient): Promise<Map<string, string>> {
  const result = await client.query({
    query: "SELECT name, argMax(checksum, applied_at) AS checksum FROM schema_migrations GROUP BY name",
    format: "JSONEachRow",
  });
  const rows = await result.json<{ name: string; checksum: string }>();
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

/**
 * Applies the migrations that have not been applied, in order, under a lock. Statements are idempotent, so a
 * run that died is repaired by the next. Throws `ServiceError` with code `migration_changed` when a file is no
 * longer the one that was applied.
 */
export async function migrate(
  deps: Server & {
    readonly topology?: Topology;
    readonly onApplied?: (name: string) => void;
  },
): Promise<MigrationState[]> {
  const topology = deps.topology ?? { cluster: null };
  const migrations = await readMigrations();
  let client: ClickHouseClient | undefined;
  try {
    await ensureDatabase(deps, topology);
    const connection = connect({ url: deps.url, ca: deps.ca, application: "migrate" });
    client = connection;
    await connection.command({
      query: `CREATE TABLE IF NOT EXISTS schema_migrations
        (name String, checksum String, applied_at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY name`,
    });
    return await withLock(connection, async () => {
      const applied = await appliedChecksums(connection);
      const states: MigrationState[] = [];
      for (const migration of migrations) {
        const checksum = applied.get(migration.name);
        if (checksum !== undefined && checksum !== migration.checksum) {
          throw new ServiceError(
            "migration_changed",
            `${migration.name} differs from the one that was applied`,
          );
        }
        if (checksum === undefined) {
          for (const statement of renderMigration(migration.template, topology)) {
            await connection.command({ query: statement });
          }
          await connection.insert({
            table: "schema_migrations",
            values: [
              { name: migration.name, checksum: migration.checksum, applied_at: new Date().toISOString() },
            ],
            format: "JSONEachRow",
            clickhouse_settings: { async_insert: 0 },
          });
          deps.onApplied?.(migration.name);
          states.push({ name: migration.name, state: "applied" });
        } else {
          states.push({ name: migration.name, state: "unchanged" });
        }
      }
      return states;
    });
  } catch (error) {
    throw error instanceof ServiceError ? error : toWarehouseError(error);
  } finally {
    await client?.close();
  }
}
