import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { ServiceError } from "@conversation-export/runtime";
import { KNOWS_LOGIN } from "../analytics/left-out-sql.ts";
import { ANALYTICS_VIEWS, analyticsDatabase, analyticsStatements } from "../analytics/views.ts";
import type { WarehouseAccess } from "../session/connection.ts";
import { serverUrls } from "../session/server-urls.ts";
import { createSession, type Session, type StatementName } from "../session/session.ts";
import { onCluster, renderMigration, type Topology } from "./migration-template.ts";
import { WarehouseError } from "../session/warehouse-error.ts";
import { acquireSchemaLock } from "./schema-lock.ts";

export type Migration = { readonly name: string; readonly checksum: string; readonly template: string };
/** `applied`: on at least one shard. */
export type MigrationState = { readonly name: string; readonly state: "applied" | "unchanged" };

type Server = Omit<WarehouseAccess, "application"> & {
  readonly address?: string | undefined;
};

type Watch = {
  readonly onBegun?: (name: string, shard?: string) => void;
  readonly onApplied?: (name: string, shard?: string) => void;
};

const FOLDER = new URL("../../migrations/", import.meta.url);
const APPLY_MS = 3_600_000;
const NAME = /^\d{4}-[a-z0-9-]+\.sql$/;

export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(FOLDER)).filter((name) => NAME.test(name)).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const template = await readFile(new URL(name, FOLDER), "utf8");
    // Over the whole file: even a changed comment is `migration_changed` for a database that has it.
    migrations.push({ name, checksum: createHash("sha256").update(template).digest("hex"), template });
  }
  return migrations;
}

async function ensureDatabase({ url, ca, address }: Server, topology: Topology): Promise<string> {
  const database = decodeURIComponent(new URL(url).pathname.slice(1));
  if (!/^\w+$/.test(database)) {
    throw new ServiceError(
      "config",
      "the ClickHouse URL names no database: http://user:password@host:port/database",
    );
  }
  const server = new URL(url);
  server.pathname = "/";
  const session = createSession({ url: server.href, ca, address, application: "migrate" });
  try {
    const query = `CREATE DATABASE IF NOT EXISTS ${database} ${onCluster(topology)}`;
    await session.command("migrate.database", query);
    return database;
  } finally {
    await session.close();
  }
}

/** By name. With Keeper only the sending server has the rows, else every shard. */
export async function appliedChecksums(
  session: Session,
  statement: StatementName,
  topology: Topology,
): Promise<ReadonlyMap<string, string>> {
  const noted =
    onCluster(topology) === ""
      ? "schema_migrations"
      : `clusterAllReplicas('${topology.cluster}', currentDatabase(), 'schema_migrations')`;
  const rows = await session.rows<{ name: string; checksum: string }>(
    statement,
    `SELECT name, argMax(checksum, applied_at) AS checksum FROM ${noted} GROUP BY name ORDER BY name`,
  );
  return new Map(rows.map(({ name, checksum }) => [name, checksum]));
}

/** CREATE OR REPLACE VIEW would drop tables. */
async function checkPlaceOfViews(session: Session, database: string): Promise<void> {
  const own = analyticsDatabase(database);
  const views = ANALYTICS_VIEWS.map(({ name }) => `'${name}'`).join(", ");
  const others = await session.rows<{ name: string }>(
    "migrate.views",
    `SELECT name FROM system.tables WHERE database = {database:String} AND engine != 'View' AND name IN (${views})
     ORDER BY name`,
    { parameters: { database: own } },
  );
  if (others.length === 0) return;
  const names = others.map(({ name }) => name).join(", ");
  throw new ServiceError(
    "config",
    `the database ${own} is for the views for analysts, but has tables with their names: ${names}; rename them`,
  );
}

/** Returns the applied ones. Views are always made anew. */
async function migrateServer(
  server: Server,
  topology: Topology,
  migrations: readonly Migration[],
  { onBegun, onApplied }: Watch,
): Promise<ReadonlySet<string>> {
  const database = await ensureDatabase(server, topology);
  const session = createSession({ ...server, application: "migrate" });
  try {
    await session.command(
      "migrate.table",
      `CREATE TABLE IF NOT EXISTS schema_migrations ${onCluster(topology)}
        (name String, checksum String, applied_at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY name`,
    );
    const lock = await acquireSchemaLock({ session, database, topology });
    try {
      const applied = await appliedChecksums(session, "migrate.applied", topology);
      const now = new Set<string>();
      for (const { name, checksum, template } of migrations) {
        const known = applied.get(name);
        if (known !== undefined && known !== checksum) {
          throw new ServiceError("migration_changed", `${name} differs from the one that was applied`);
        }
        if (known !== undefined) continue;
        onBegun?.(name);
        for (const statement of renderMigration(template, topology)) {
          lock.assertHeld();
          await session.command("migrate.apply", statement, { timeoutMs: APPLY_MS });
        }
        lock.assertHeld();
        const row = { name, checksum, applied_at: new Date().toISOString() };
        await session.insert("migrate.note", { table: "schema_migrations", rows: [row] });
        onApplied?.(name);
        now.add(name);
      }
      await checkPlaceOfViews(session, database);
      const [about] = await session.rows<{ knowsLogin: boolean }>(
        "migrate.functions",
        `SELECT ${KNOWS_LOGIN} AS knowsLogin`,
      );
      for (const statement of analyticsStatements(database, topology, about ?? { knowsLogin: false })) {
        lock.assertHeld();
        await session.command("migrate.views", statement);
      }
      return now;
    } finally {
      await lock.release();
    }
  } finally {
    await session.close();
  }
}

/**
 * In order, under a lock, shard by shard without Keeper.
 * @throws ServiceError `migration_changed`, `migration_locked`, `config` (URL without database); WarehouseError
 */
export async function migrate(
  deps: Server & {
    readonly topology?: Topology;
  } & Watch,
): Promise<MigrationState[]> {
  const topology = deps.topology ?? { cluster: null };
  const migrations = await readMigrations();
  const applied = new Set<string>();
  for (const [index, url] of serverUrls(deps.url, topology).entries()) {
    const shard = topology.shards?.[index];
    try {
      const now = await migrateServer({ url, ca: deps.ca, address: shard }, topology, migrations, {
        onBegun: (name) => deps.onBegun?.(name, shard),
        onApplied: (name) => deps.onApplied?.(name, shard),
      });
      for (const name of now) applied.add(name);
    } catch (error) {
      throw ofShard(error, shard);
    }
  }
  return migrations.map(({ name }) => ({ name, state: applied.has(name) ? "applied" : "unchanged" }));
}

function ofShard(error: unknown, shard: string | undefined): unknown {
  if (shard === undefined || !(error instanceof ServiceError) || error instanceof WarehouseError)
    return error;
  const { code, message, retryable } = error;
  return new ServiceError(code, `${shard}: ${message}`, { retryable, cause: error });
}
