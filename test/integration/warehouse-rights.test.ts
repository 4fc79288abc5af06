import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { choosePorts } from "@conversation-export/local-stack";
import { grantsOf, SERVICE_USERS, WAREHOUSE_USERS, type WarehouseUser } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { ops } from "../system/ops.ts";
import { type ServiceProcess, startService } from "../system/service-process.ts";
import { clusterVariables } from "../system/shards.ts";
import { until } from "../system/until.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

let warehouse: Warehouse;
let tables: string[];

beforeAll(async () => {
  warehouse = await startWarehouse();
  const found = `SELECT if(database = currentDatabase(), name, concat(database, '.', name))
    FROM system.tables WHERE startsWith(database, currentDatabase()) ORDER BY ALL FORMAT TSV`;
  tables = (await warehouse.sql(found)).split("\n");
});
afterAll(() => warehouse?.stop());

/** "" when ClickHouse runs the statement. */
const refusal = async (sql: string, user: WarehouseUser | "migrator"): Promise<string> => {
  const answer = await warehouse.sql(sql, user).catch((error: Error) => error.message);
  if (/ACCESS_DENIED|READONLY/.test(answer)) return "denied";
  // The error of another engine: the right was there.
  return "";
};

const ATTEMPTS: Readonly<Record<string, (table: string) => string>> = {
  SELECT: (table) => `SELECT * FROM ${table} LIMIT 0`,
  INSERT: (table) => `INSERT INTO ${table} FORMAT JSONEachRow`,
  "ALTER DELETE": (table) => `ALTER TABLE ${table} DELETE WHERE 0`,
  "ALTER UPDATE": (table) => `ALTER TABLE ${table} UPDATE _none = 0 WHERE 0`,
  OPTIMIZE: (table) => `OPTIMIZE TABLE ${table}`,
  "SYSTEM MERGES": (table) => `SYSTEM START MERGES ${table}`,
  TRUNCATE: (table) => `TRUNCATE TABLE ${table}`,
  "ALTER ADD COLUMN": (table) => `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS _none UInt8`,
  "DROP TABLE": (table) => `DROP TABLE ${table}`,
};

describe("each user, each table, each kind of statement", () => {
  it.each(WAREHOUSE_USERS)("%s", async (user) => {
    const needed = new Set(
      grantsOf(user, "conversation_export", warehouse.topology).flatMap(({ privileges, on }) =>
        privileges.map((privilege) => `${privilege} ${on.replace("conversation_export.", "")}`),
      ),
    );
    const may: string[] = [];
    for (const table of tables) {
      for (const [privilege, statement] of Object.entries(ATTEMPTS)) {
        if ((await refusal(statement(table), user)) === "") may.push(`${privilege} ${table}`);
      }
    }
    // ClickHouse 26.7 lets a user who may delete rows mask them, so that right is no limit.
    const expected = [...needed].filter((one) => !/^ALTER UPDATE| (system\.\w+|\*\.\*)$/.test(one));
    expect(may.toSorted()).toEqual(expected.toSorted());
  });
});

it.each([
  ["adds to the rights", [], ""],
  ["replaces the rights", ["--exact"], " WITH REPLACE OPTION"],
  ["adds to those of analysts", ["--analyst"], ""],
])("what export-ops prints %s, and ClickHouse reads it", async (_, options, ending) => {
  const migrator = { CLICKHOUSE_URL: warehouse.stack.clickhouse.url("migrator") };
  const printed = await ops(migrator, "grants", ...options);
  const statements = printed.split(";").filter((one) => one.trim().startsWith("GRANT"));
  const users = options.includes("--analyst") ? ["analyst"] : SERVICE_USERS;
  expect(statements).toHaveLength(users.length);
  for (const [index, statement] of statements.entries()) {
    const read = await warehouse.sql(`SELECT formatQuerySingleLine($$${statement}$$) FORMAT TSVRaw`);
    expect(read.endsWith(` TO ${users[index]}${ending}`)).toBe(true);
    expect(read).toMatch(/ ON conversation_export(_analytics)?\./);
  }
});

describe("what a process that is taken over cannot do", () => {
  const KEY =
    "INSERT INTO api_keys (key_hash, version, key_id, client_id, scopes) VALUES ('00', 1, 'k', 'other', ['export'])";

  test.each<[string, WarehouseUser | "migrator", string]>([
    ["ingest makes a key", "writer", KEY],
    ["ingest makes a client", "writer", "INSERT INTO clients (client_id, version) VALUES ('x', 1)"],
    ["ingest reads records", "writer", "SELECT record FROM messages"],
    ["ingest reads whom a request is about", "writer", "SELECT email FROM data_subject_requests"],
    ["export-api reads whom a request is about", "reader", "SELECT email FROM data_subject_requests"],
    ["export-api reads what was erased", "reader", "SELECT value FROM suppressions"],
    ["export-api reads keys with the user for pages", "reader", "SELECT key_id FROM api_keys"],
    ["export-api reads records with the user for look-ups", "lookup", "SELECT record FROM messages"],
    ["export-api reads the landed events", "reader", "SELECT payload FROM landing"],
    ["jobs makes a key", "jobs", KEY],
    [
      "jobs makes a revoked key work again",
      "jobs",
      "INSERT INTO api_keys SELECT * REPLACE (false AS revoked, version + 1 AS version) FROM api_keys",
    ],
    ["jobs deletes the row that revokes a key", "jobs", "ALTER TABLE api_keys DELETE WHERE revoked"],
    ["jobs restores a client", "jobs", "INSERT INTO clients (client_id, version) VALUES ('x', 1)"],
    ["an analyst reads a table", "analyst", "SELECT record FROM messages"],
    ["an analyst reads what is hidden", "analyst", "SELECT id FROM erasure_keys"],
    ["jobs reads the users", "jobs", "SELECT name FROM system.users"],
    ["export-api reads the users", "reader", "SELECT name FROM system.users"],
    ["a migration makes a database of another name", "migrator", "CREATE DATABASE elsewhere"],
    ["jobs asks another server", "jobs", "SELECT * FROM url('http://127.0.0.1:1', 'CSV', 'a String')"],
  ])("%s", async (_, user, sql) => {
    expect(await refusal(sql, user)).toBe("denied");
  });
});

describe("export-api, which replaces the former process as soon as it is ready", () => {
  const NOWHERE = "127.0.0.1:1";
  let ports: Readonly<Record<"right" | "reader" | "intake" | "lookup", number>>;
  const started: ServiceProcess[] = [];

  const start = (name: keyof typeof ports, env: Readonly<Record<string, string>> = {}) => {
    const { stack } = warehouse;
    const logFile = join(stack.dir, `export-api-${name}.log`);
    const service = startService("export-api", {
      metricsPort: ports[name],
      logFile,
      env: {
        ...clusterVariables(stack),
        PORT: "0",
        // It starts without them.
        KAFKA_BROKERS: NOWHERE,
        REDIS_URL: `redis://${NOWHERE}`,
        CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
        CLICKHOUSE_URL: stack.clickhouse.url("reader"),
        CLICKHOUSE_LOOKUP_URL: stack.clickhouse.url("lookup"),
        CLICKHOUSE_INTAKE_URL: stack.clickhouse.url("intake"),
        ...env,
      },
    });
    started.push(service);
    return { service, logFile };
  };
  const withWrongPassword = (user: "reader" | "intake"): string => {
    const url = new URL(warehouse.stack.clickhouse.url(user));
    url.password = "mistyped";
    return url.href;
  };

  beforeAll(async () => {
    ports = await choosePorts({ names: ["right", "reader", "intake", "lookup"], fixed: {} });
  });
  afterAll(() => Promise.all(started.map((service) => service.kill("SIGKILL"))));

  it("becomes ready when all its users can do their work", async () => {
    await expect(start("right").service.ready()).resolves.toBeUndefined();
  });

  it.each([
    ["the password of the reading user is wrong", "reader", "CLICKHOUSE_URL", "AUTHENTICATION_FAILED"],
    ["the password of the intake user is wrong", "intake", "CLICKHOUSE_INTAKE_URL", "AUTHENTICATION_FAILED"],
    ["the user for look-ups may not read keys", "lookup", "CLICKHOUSE_LOOKUP_URL", "ACCESS_DENIED"],
  ] as const)("does not become ready while %s", async (_, user, variable, cause) => {
    const url = user === "lookup" ? warehouse.stack.clickhouse.url("reader") : withWrongPassword(user);
    const { service, logFile } = start(user, { [variable]: url });
    const isReady = async () => (await fetch(`${service.metricsUrl}/ready`).catch(() => null))?.ok === true;
    await until("it has tried a second time", 60_000, async () => {
      expect(await isReady()).toBe(false);
      const log = existsSync(logFile) ? readFileSync(logFile, "utf8") : "";
      const tries = log.split("\n").filter((line) => line.includes("connecting to ClickHouse failed"));
      for (const line of tries) expect(line).toContain(cause);
      return tries.length > 1;
    });
  });
});
