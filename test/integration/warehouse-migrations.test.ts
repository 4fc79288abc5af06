import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, utimes } from "node:fs/promises";
import { createServer } from "node:http";
import { tied } from "@conversation-export/local-stack";
import {
  createBackfillRuns,
  createClientStore,
  createDeletion,
  createReader,
  createWrongRows,
  migrate,
  renderMigration,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHoldingProxy } from "../faults/holding-proxy.ts";
import { until } from "../system/until.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import { uploadNow } from "../warehouse/upload-now.ts";
import { listen } from "../system/listen.ts";

let warehouse: Warehouse;
const sessions = createSessions();
beforeAll(async () => {
  warehouse = await startWarehouse({ testRights: { otherDatabases: true } });
});
afterAll(async () => {
  await sessions.close();
  await warehouse?.stop();
});

function urlOf(database: string): string {
  return warehouse.stack.clickhouse
    .url("migrator")
    .replace(/\/conversation_export$/, `/conversation_export_${database}`);
}

function tables(database: string): Promise<string> {
  return warehouse.sql(
    `SELECT name, create_table_query FROM system.tables WHERE database = 'conversation_export_${database}' AND NOT startsWith(name, 'schema_lock') ORDER BY name`,
  );
}

function locks(database: string): Promise<string> {
  return warehouse.sql(
    `SELECT name FROM system.tables WHERE database = 'conversation_export_${database}' AND startsWith(name, 'schema_lock')`,
  );
}

async function stateOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "done",
    (error: { code?: string; retryable?: boolean }) => `${error.code} ${error.retryable}`,
  );
}

/** Seconds since the lock's renewal, by the server's clock. */
async function lockAge(database: string): Promise<number> {
  return Number(
    await warehouse.sql(
      `SELECT dateDiff('second', metadata_modification_time, now()) FROM system.tables WHERE database = 'conversation_export_${database}' AND startsWith(name, 'schema_lock')`,
    ),
  );
}

async function ageLock(database: string, seconds: number): Promise<void> {
  const [path, root] = (
    await warehouse.sql(
      `SELECT metadata_path, (SELECT path FROM system.disks WHERE name = 'default') FROM system.tables WHERE database = 'conversation_export_${database}' AND startsWith(name, 'schema_lock')`,
    )
  ).split("\t");
  const then = new Date(Date.now() - seconds * 1000);
  await utimes(path?.startsWith("/") ? path : `${root}${path}`, then, then);
}

/** Killed while it holds the lock; its pid. */
async function killMigration(url: string): Promise<number | undefined> {
  const index = new URL("../../packages/warehouse/src/index.ts", import.meta.url).href;
  const program = `import { writeSync } from "node:fs";
    const { migrate } = await import(${JSON.stringify(index)});
    const onApplied = (name) => {
      writeSync(1, name);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    };
    await migrate({ url: ${JSON.stringify(url)}, onApplied });`;
  const [node, ...args] = tied([process.execPath, "--input-type=module", "--eval", program]);
  const child = spawn(node, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  return child.pid;
}

describe("migrate", () => {
  test("applies all once, and nothing the second time", async () => {
    const url = urlOf("m1");
    const applied: string[] = [];
    const first = await migrate({ url, onApplied: (name) => void applied.push(name) });
    const before = await tables("m1");
    const second = await migrate({ url });
    expect(first.length).toBeGreaterThan(3);
    expect(first.every(({ state }) => state === "applied")).toBe(true);
    expect(applied).toEqual(first.map(({ name }) => name));
    expect(second).toEqual(first.map(({ name }) => ({ name, state: "unchanged" })));
    expect(await tables("m1")).toBe(before);
    expect(await locks("m1")).toBe("");
  });

  test("a run that died after its statements is repaired by the next", async () => {
    const url = urlOf("m2");
    await migrate({ url });
    const before = await tables("m2");
    await warehouse.sql("TRUNCATE TABLE conversation_export_m2.schema_migrations");
    await warehouse.sql("DROP TABLE conversation_export_m2.handoffs");
    const states = await migrate({ url });
    expect(states.every(({ state }) => state === "applied")).toBe(true);
    const withoutIds = (text: string): string => text.replace(/UUID '[^']+'/g, "");
    expect(withoutIds(await tables("m2"))).toBe(withoutIds(before));
  });

  test("a file that is no longer the one that was applied is refused, and the lock given back", async () => {
    const url = urlOf("m3");
    const [first] = await migrate({ url });
    await warehouse.sql(
      `INSERT INTO conversation_export_m3.schema_migrations VALUES ('${first?.name}', 'another', now64(3) + INTERVAL 1 HOUR)`,
    );
    for (let times = 2; times > 0; times -= 1)
      expect(await stateOf(migrate({ url }))).toBe("migration_changed false");
    expect(await locks("m3")).toBe("");
  });

  test("of many at once one does the work, the others are done or may try again", async () => {
    const url = urlOf("m4");
    const states = await Promise.all(Array.from({ length: 6 }, () => stateOf(migrate({ url }))));
    expect(states).toContain("done");
    for (const state of states) expect(["done", "migration_locked true"]).toContain(state);
    expect((await migrate({ url })).every(({ state }) => state === "unchanged")).toBe(true);
    const rows = await warehouse.sql(
      "SELECT count(), uniqExact(name) FROM conversation_export_m4.schema_migrations",
    );
    const [count, names] = rows.split("\t");
    expect(count).toBe(names);
  });

  test.concurrent("the lock of a killed migration is free after 30 seconds, for one of many", async () => {
    const url = urlOf("m8");
    const killedPid = await killMigration(url);
    const held = await migrate({ url }).catch((error: Error) => error);
    expect(held).toMatchObject({ code: "migration_locked", retryable: true });
    expect((held as Error).message).toContain(`pid ${killedPid} on `);
    await ageLock("m8", 20);
    expect(await stateOf(migrate({ url }))).toBe("migration_locked true");
    await ageLock("m8", 30);
    const applied: string[] = [];
    const onApplied = (name: string): void => void applied.push(name);
    const states = await Promise.all(Array.from({ length: 6 }, () => stateOf(migrate({ url, onApplied }))));
    expect(states).toContain("done");
    for (const state of states) expect(["done", "migration_locked true"]).toContain(state);
    expect(applied).toEqual([...new Set(applied)]);
    expect(await stateOf(migrate({ url }))).toBe("done");
    expect(await locks("m8")).toBe("");
  });

  test.concurrent("a migration that was paused before it takes a free lock gives way to who took it meanwhile", async () => {
    const url = urlOf("m5");
    await killMigration(url);
    await ageLock("m5", 30);
    const paused = await startHoldingProxy(url, "CREATE TABLE schema_lock");
    const other = await startHoldingProxy(url, "INSERT INTO schema_migrations");
    try {
      const late = stateOf(migrate({ url: paused.url }));
      await paused.reached;
      const running = stateOf(migrate({ url: other.url }));
      await other.reached;
      paused.release();
      expect(await late).toBe("migration_locked true");
      other.release();
      expect(await running).toBe("done");
      expect(await locks("m5")).toBe("");
    } finally {
      await paused.close();
      await other.close();
    }
  });

  test.concurrent("a live migration keeps its lock during a statement that takes longer than the lock counts", async () => {
    const proxy = await startHoldingProxy(urlOf("m9"), "INSERT INTO schema_migrations");
    try {
      const running = stateOf(migrate({ url: proxy.url }));
      await proxy.reached;
      await ageLock("m9", 25);
      await until("the lock is renewed", 10_000, async () => (await lockAge("m9")) < 20);
      expect(await stateOf(migrate({ url: urlOf("m9") }))).toBe("migration_locked true");
      // A lock that looks expired is renewed while another waits to drop it.
      await ageLock("m9", 40);
      expect(await stateOf(migrate({ url: urlOf("m9") }))).toBe("migration_locked true");
      expect(await locks("m9")).not.toBe("");
      proxy.release();
      // A process that finds another lock beside its own may give way, too.
      expect(await running).toMatch(/^(done|migration_locked true)$/);
      expect(await stateOf(migrate({ url: urlOf("m9") }))).toBe("done");
      expect(await locks("m9")).toBe("");
    } finally {
      await proxy.close();
    }
  });

  test.concurrent("a migration whose lock was taken over stops before its next statement", async () => {
    const proxy = await startHoldingProxy(urlOf("m10"), "INSERT INTO schema_migrations");
    try {
      const running = stateOf(migrate({ url: proxy.url }));
      await proxy.reached;
      await warehouse.sql(`DROP TABLE conversation_export_m10.${await locks("m10")}`);
      await warehouse.sql(
        "CREATE TABLE conversation_export_m10.schema_lock_of_another (owner String) ENGINE = Memory COMMENT 'another, lease 30 s'",
      );
      const readsBefore = proxy.count("system.tables");
      await until(
        "the holder looks at its lock",
        10_000,
        async () => proxy.count("system.tables") > readsBefore,
      );
      proxy.release();
      expect(await running).toBe("migration_locked true");
      expect(await locks("m10")).toBe("schema_lock_of_another");
    } finally {
      await proxy.close();
    }
  });

  test("a URL without a database or with a user who may not create tables is an error", async () => {
    const { url } = warehouse.stack.clickhouse;
    expect(await stateOf(migrate({ url: new URL("/", url("migrator")).href }))).toBe("config false");
    expect(await stateOf(migrate({ url: `${url("writer")}_m6` }))).toBe("warehouse_unavailable true");
  });
});

test("the server parses the statements for a cluster", async () => {
  const folder = new URL("../../packages/warehouse/migrations/", import.meta.url);
  const statements = new Map<string, number>();
  for (const name of await readdir(folder)) {
    for (const statement of renderMigration(await readFile(new URL(name, folder), "utf8"), {
      cluster: "main",
    })) {
      const tree = await warehouse.sql(`EXPLAIN AST ${statement}`);
      const [kind = ""] = tree.split(/\s/, 1);
      expect(["CreateQuery", "AlterQuery"]).toContain(kind);
      expect(statement).toMatch(/ON CLUSTER 'main'/);
      if (kind === "CreateQuery") {
        expect(statement).toMatch(/ENGINE = (Replicated(Replacing|Summing)?MergeTree|Distributed)\b/);
      }
      statements.set(kind, (statements.get(kind) ?? 0) + 1);
    }
  }
  expect(statements.get("CreateQuery")).toBeGreaterThanOrEqual(14);
  expect((statements.get("CreateQuery") ?? 0) % 2).toBe(0);
});

const recordStatements = async (work: (url: string) => Promise<unknown>): Promise<readonly string[]> => {
  const statements: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const url = new URL(request.url ?? "/", "http://server");
      statements.push(url.searchParams.get("query") ?? Buffer.concat(chunks).toString());
      response.end();
    });
  });
  const { port, close } = await listen(server);
  try {
    await work(`http://user:password@127.0.0.1:${port}/conversation_export`);
  } finally {
    await close();
  }
  return statements;
};

test("the server parses what else is said to a whole cluster", async () => {
  const topology = { cluster: "main" };
  const statements = await recordStatements(async (url) => {
    await migrate({ url, topology });
    const deps = { session: sessions.open(url, topology) };
    const deletion = createDeletion(deps);
    const [runs, wrong] = [
      createBackfillRuns(deps),
      createWrongRows({ ...deps, runUpload: uploadNow, holder: "x" }),
    ];
    for (const table of ["conversations", "messages"] as const) {
      const rows = { table, condition: "client_id = {client:String}", parameters: { client: "acme" } };
      await deletion.mask(rows);
      await deletion.erase(rows);
      await deletion.dropMasked(table, "202610");
    }
    await runs.forget("run");
    await wrong.end("x", new AbortController().signal);
  });
  const toAll = statements.filter((statement) => !/^\s*(SELECT|INSERT)\b/.test(statement));
  const kinds = new Set<string>();
  for (const statement of toAll) {
    expect(statement).toMatch(/ON CLUSTER 'main'/);
    const tree = await warehouse.sql(`EXPLAIN AST ${statement.replace(/\{\w+:\w+\}/g, "''")}`);
    kinds.add(tree.split(/\s/, 1)[0] ?? "");
  }
  expect([...kinds]).toEqual(
    expect.arrayContaining(["CreateQuery", "AlterQuery", "DeleteQuery", "DropQuery"]),
  );
  const questions = statements.filter((statement) => /schema_migrations/.test(statement));
  expect(questions.filter((one) => /clusterAllReplicas\('main'/.test(one))).not.toEqual([]);
});

describe("clients and keys, in unmerged parts", () => {
  test("the latest change of a client or a key counts", async () => {
    let now = 1_000;
    const { url } = warehouse.stack.clickhouse;
    const store = createClientStore({ session: sessions.open(url("migrator")), now: () => now });
    const session = sessions.open(url("lookup"));
    const reader = createReader({ session, lookups: session });
    const hash = "a".repeat(64);
    const client = {
      clientId: "it's",
      linkBounds: null,
      rateLimits: {},
      retentionDays: null,
      deleted: false,
      createdAt: "2026-10-04T00:00:00.123Z",
    };
    const key = {
      keyId: "k1",
      clientId: client.clientId,
      label: "l",
      scopes: ["read", "a'b"],
      revoked: false,
      createdAt: "2026-10-04T00:00:00.000Z",
      expiresAt: null,
    };
    await store.addKey(hash, key);
    expect(await reader.findKey(hash)).toMatchObject({ clientId: client.clientId, clientDeleted: true });
    await store.saveClient(client);
    expect(await reader.findKey(hash)).toEqual({
      clientId: client.clientId,
      keyId: "k1",
      scopes: ["read", "a'b"],
      clientDeleted: false,
      linkBounds: null,
      rateLimits: {},
    });
    expect(await store.findClient(client.clientId)).toEqual(client);
    expect(await store.listKeys(client.clientId)).toEqual([key]);
    expect(await store.listKeys("nobody")).toEqual([]);
    now += 1;
    const rateLimits = { messages: "10/1s,100/1m", end_users: "off", conversations: "unreadable" };
    const changed = { ...client, linkBounds: "advancing", rateLimits, retentionDays: 400 } as const;
    await store.saveClient(changed);
    expect(await store.findClient(client.clientId)).toEqual(changed);
    expect(await reader.findKey(hash)).toMatchObject({ linkBounds: "advancing", clientDeleted: false });
    // An unreadable value counts as absent.
    expect((await reader.findKey(hash))?.rateLimits).toEqual({
      messages: [
        { requests: 10, seconds: 1 },
        { requests: 100, seconds: 60 },
      ],
      end_users: [],
    });
    // Two changes within one millisecond: the later one counts.
    await store.saveClient({ ...client, deleted: true });
    expect(await reader.findKey(hash)).toMatchObject({ linkBounds: null, clientDeleted: true });
    expect(await store.listClients()).toEqual([{ ...client, deleted: true }]);
    now += 1;
    expect(await store.revokeKey("k1")).toBe(true);
    expect(await reader.findKey(hash)).toBeNull();
    expect(await store.revokeKey("k1")).toBe(false);
    expect(await store.revokeKey("unknown")).toBe(false);
    expect(await store.listKeys(null)).toEqual([{ ...key, revoked: true }]);
    expect(await reader.findKey("b".repeat(64))).toBeNull();

    const ends = (hash: string, ms: number) =>
      store.addKey(hash, { ...key, keyId: hash, expiresAt: new Date(Date.now() + ms).toISOString() });
    expect(await reader.validKeys(10)).toEqual([]);
    await Promise.all([ends("c".repeat(64), 60_000), ends("d".repeat(64), -1_000)]);
    const newest = { ...key, keyId: "newest", createdAt: "2026-10-05T00:00:00.000Z" };
    await store.addKey("e".repeat(64), newest);
    expect(await reader.validKeys(10)).toEqual(["e".repeat(64), "c".repeat(64)]);
    expect(await reader.validKeys(1)).toEqual(["e".repeat(64)]);
    expect(await reader.findKey("c".repeat(64))).toMatchObject({ clientId: client.clientId });
    expect(await reader.findKey("d".repeat(64))).toBeNull();
  });
});
