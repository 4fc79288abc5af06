import {
  createInspector,
  createSession,
  createWriter,
  migrate,
  type WarehouseError,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { fold } from "../reference/index.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { ops } from "../system/ops.ts";
import { clusterVariables, topologyOf } from "../system/shards.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { GROUP, startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { getPage } from "../compare/walk.ts";
import { createSample } from "../sample/index.ts";
import { ticketNow } from "../warehouse/upload-now.ts";

const CLIENTS = ["acme", "globex"];
const CONVERSATIONS = bySize(1_000, 20_000);
const WINDOW = "created_since=1970-01-01T00:00:00Z&created_to=2105-12-31T00:00:00Z&page_size=100";
const PATHS = [
  `v2/export/conversations?${WINDOW}`,
  `v2/export/conversations?${WINDOW.replaceAll("created", "updated")}`,
  `v2/export/messages?${WINDOW}`,
  `v2/export/messages?conversation_id=one&${WINDOW}`,
  "v2/end-users/",
];

const TABLES = [
  ["conversations", "conversation_id"],
  ["conversation_updates", "conversation_id"],
  ["handoffs", "conversation_id"],
  ["messages", "message_id"],
  ["record_dates", "id"],
  ["end_users", "end_user_id"],
  ["landing", "record_id"],
] as const;

let system: System;
let delivery: Delivery;
let seed: string;
const keys = new Map<string, string>();

const askServer = async (index: number, sql: string): Promise<string> => {
  const server = system.stack.clickhouseShards[index];
  if (server === undefined) throw new Error("there is no such shard");
  const response = await fetch(`http://${server.host}:${server.port}/?database=${server.database}`, {
    method: "POST",
    body: sql,
    headers: { "x-clickhouse-user": "migrator", "x-clickhouse-key": server.passwords.migrator },
  });
  const text = (await response.text()).trim();
  if (!response.ok) throw new Error(text);
  return text;
};

const second = () => {
  const server = system.stack.clickhouseShards[1];
  if (server === undefined) throw new Error("there is no second shard");
  return server;
};

const send = (name: string, conversations: number): Promise<void> =>
  delivery.send(
    createSample({ seed: `${seed}-${name}`, conversations, messagesPerConversation: 3, clients: CLIENTS }),
  );

const answers = (): Promise<Response[]> =>
  Promise.all(
    PATHS.map((path) =>
      fetch(`${system.apiUrl}/${path}`, { headers: { authorization: `Bearer ${keys.get("acme")}` } }),
    ),
  );

beforeAll(async () => {
  seed = seedOfRun("shards");
  system = await startSystem("test-shards", { shards: 2 });
  delivery = createDelivery(system);
  for (const client of CLIENTS) keys.set(client, await system.key(client, ["export", "end_users"]));
  await Promise.all([
    system.service("ingest", { BATCH_MAX_RECORDS: "500", BATCH_MAX_AGE_MS: "100" }),
    system.service("export-api", { KEY_CACHE_SECONDS: "10" }),
  ]);
  await send("first", CONVERSATIONS);
  await system.caughtUp(120_000);
});
afterAll(() => system?.stop());

describe("two shards", () => {
  it("hold about half of the rows each, and every record on one of them", async () => {
    const idsOf = async (index: number, table: string, id: string): Promise<string[]> =>
      (await askServer(index, `SELECT DISTINCT client_id, ${id} FROM ${table}_local`)).split("\n");
    const shardOf = new Map<string, number>();
    for (const [table, id] of TABLES) {
      const [one, other] = await Promise.all([idsOf(0, table, id), idsOf(1, table, id)]);
      const share = one.length / (one.length + other.length);
      expect(share, table).toBeGreaterThan(0.4);
      expect(share, table).toBeLessThan(0.6);
      // A conversation's rows and events lie on one shard, since they are merged and joined.
      for (const [index, ids] of [one, other].entries()) {
        for (const name of ids) expect(shardOf.get(name) ?? index, `${table} ${name}`).toBe(index);
        for (const name of ids) shardOf.set(name, index);
      }
    }
  });

  it("are asked together: all lists, page by page, are what one server gives", async () => {
    const expected = fold(delivery.delivered);
    expect(await compareExports(system.apiUrl, expected, keys, 100)).toEqual([]);
    expect(await compareExports(system.apiUrl, expected, keys, 5_000)).toEqual([]);
  });
});

describe("a shard that is away", () => {
  it("makes every list a 503 and never one without its rows, ingest waits, and everything is there once", async () => {
    const before = (await getPage(`${system.apiUrl}/${PATHS[0]}`, keys.get("acme") ?? "")).records.length;
    expect(before).toBe(100);
    await second().kill();
    for (const response of await answers()) {
      expect(response.status).toBe(503);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    await send("away", 200);
    // Rows that the live shard took are written again with the rest.
    const committed = async (): Promise<number> =>
      (await system.admin.fetchLag(GROUP, ["conversations"])).reduce((sum, { lag }) => sum + lag, 0);
    await until("ingest lags", 10_000, async () => (await committed()) > 0);
    await second().start();
    await system.caughtUp(60_000);
    const expected = fold(delivery.delivered);
    await until("every list is answered", 20_000, async () =>
      (await answers()).every(({ status }) => status === 200),
    );
    expect(await compareExports(system.apiUrl, expected, keys)).toEqual([]);
  });
});

test("data that ends too early is no fault of the rows, for a shard that dies says the same", async () => {
  const session = createSession({ url: system.stack.clickhouse.url("writer"), application: "test" });
  const writer = createWriter({ session });
  const insert = { columns: ["client_id", "message_id"], rows: 1, body: Buffer.from([3, 97]) };
  const codeOf = (table: string) =>
    writer
      .insert({ ...insert, table }, ticketNow())
      .catch((error: WarehouseError) => `${error.code} ${error.retryable}`);
  expect(await codeOf("messages")).toBe("warehouse_unavailable true");
  expect(await codeOf("messages_local")).toBe("warehouse_refused_data false");
  await session.close();
});

describe("jobs on two shards", () => {
  it("compact, compare with the bus and compute anew, and what is exported stays the same", async () => {
    const windows = { UPLOAD_WINDOW_SECONDS: "1", UPLOAD_WINDOW_GRACE_SECONDS: "0" };
    await system.service("jobs", {
      ...windows,
      WINDOWS_INTERVAL_SECONDS: "1",
      COMPACT_INTERVAL_SECONDS: "0",
    });
    const operator = { ...system.environment("jobs"), ...windows };
    const run = async (...args: string[]): Promise<Record<string, never>> =>
      (JSON.parse(await ops(operator, ...args, "--json")) as { result: Record<string, never> }).result;
    const rowsOf = async (): Promise<number[]> =>
      (
        await Promise.all(
          [0, 1].map((index) => askServer(index, "SELECT count() FROM conversation_updates_local")),
        )
      ).map(Number);

    const expected = fold(delivery.delivered);
    const before = await rowsOf();
    await until("windows are closed", 30_000, async () => {
      const lines = JSON.parse(await ops(operator, "windows", "--state", "closed", "--json")) as unknown[];
      return lines.length > 0;
    });
    const compacted = await run("compact", "--force");
    expect(compacted["supersededUpdates"]).toBeGreaterThan(0);
    for (const [index, rows] of (await rowsOf()).entries()) expect(rows).toBeLessThan(before[index] ?? 0);
    expect(await compareExports(system.apiUrl, expected, keys)).toEqual([]);

    const since = new Date(Date.now() - 3_600_000).toISOString();
    const hour = ["--since", since, "--until", new Date().toISOString()];
    expect(await run("reconcile", ...hour)).toMatchObject({ missing: 0 });
    const computed = await run("backfill", "--all-clients", ...hour, "--dry-run");
    expect(computed).toMatchObject({ records: { different: 0 } });
  });
});

describe("migrations of two shards", () => {
  const DATABASE = "conversation_export_shards";
  const operator = (index: number) => ({
    url: system.stack.clickhouseShards[index]?.url("migrator", DATABASE) ?? "",
    topology: topologyOf(system.stack),
  });
  const applied = async (index: number): Promise<string[]> => {
    const seen: string[] = [];
    await migrate({ ...operator(index), onApplied: (name, shard) => seen.push(`${name} ${shard}`) });
    return seen;
  };

  it("bring each to the same tables, whichever is asked, and complete one that is behind or new", async () => {
    const files = (await applied(0)).length / 2;
    expect(files).toBeGreaterThan(9);
    expect(await applied(1)).toEqual([]);
    const tables = (index: number): Promise<string> =>
      askServer(
        index,
        `SELECT name, engine FROM system.tables WHERE database = '${DATABASE}' ORDER BY name FORMAT TSV`,
      );
    expect(await tables(1)).toBe(await tables(0));
    expect(await tables(0)).not.toContain("schema_lock");

    const address = topologyOf(system.stack).shards?.[1] ?? "";
    await askServer(
      1,
      `ALTER TABLE ${DATABASE}.schema_migrations DELETE WHERE name >= '0010' SETTINGS mutations_sync = 2`,
    );
    await askServer(1, `DROP TABLE ${DATABASE}.reconciled`);
    await askServer(1, `DROP TABLE ${DATABASE}.upload_windows_local`);
    const inspector = createInspector({ ...operator(0), application: "test" });
    const behind = (await inspector.schema()).filter(({ state }) => state !== "applied");
    await inspector.close();
    const later = Array.from({ length: files - 9 }, (_, index) => `00${10 + index}`);
    expect(behind.map(({ name, state }) => `${name.slice(0, 4)} ${state}`)).toEqual(
      later.map((number) => `${number} pending`),
    );
    const again = await applied(0);
    expect(again.every((line) => line.endsWith(` ${address}`))).toBe(true);
    expect(again.map((line) => line.slice(0, 4))).toEqual(later);
    expect(await tables(1)).toBe(await tables(0));

    await askServer(1, `DROP DATABASE ${DATABASE} SYNC`);
    expect(await applied(0)).toHaveLength(files);
    expect(await tables(1)).toBe(await tables(0));
  });

  it("name the shard that is away", async () => {
    const address = topologyOf(system.stack).shards?.[1] ?? "";
    const environment = {
      ...clusterVariables(system.stack),
      CLICKHOUSE_URL: system.stack.clickhouse.url("migrator"),
    };
    await second().kill();
    try {
      await expect(migrate(operator(0))).rejects.toThrow(address);
      // If its audit entry belongs to that shard, it fails first.
      const refused = new RegExp(`${new URL(address).host}|Connection refused`);
      await expect(ops(environment, "migrate")).rejects.toThrow(refused);
    } finally {
      await second().start();
    }
    expect(await ops(environment, "migrate")).toMatch(/^unchanged {2}0001/);
  });
});
