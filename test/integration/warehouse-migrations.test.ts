import { once } from "node:events";
import { readdir, readFile, utimes } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  BACKFILL_RUN,
  createClientStore,
  createDeletion,
  createPartitionStore,
  createReader,
  createRecordReader,
  createRowReplacer,
  migrate,
  renderMigration,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { conversation, DAY_0, message, startWarehouse, until, type Warehouse } from "./warehouse-fixture.ts";

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
});
afterAll(() => warehouse?.stop());

function urlOf(database: string): string {
  return warehouse.stack.clickhouse
    .url("migrator")
    .replace(/\/conversation_export$/, `/conversation_export_${database}`);
}

function tables(database: string): Promise<string> {
  return warehouse.sql(
    `SELECT name, create_table_query FROM system.tables WHERE database = 'conversation_export_${database}' AND name != 'schema_lock' ORDER BY name`,
  );
}

async function stateOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "done",
    (error: { code?: string; retryable?: boolean }) => `${error.code} ${error.retryable}`,
  );
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
    expect(await warehouse.sql("EXISTS conversation_export_m1.schema_lock")).toBe("0");
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
    expect(await warehouse.sql("EXISTS conversation_export_m3.schema_lock")).toBe("0");
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

  test("a lock that is held is respected, a stale one taken over", async () => {
    const url = urlOf("m5");
    await migrate({ url });
    await warehouse.sql("CREATE TABLE conversation_export_m5.schema_lock (owner String) ENGINE = Memory");
    expect(await stateOf(migrate({ url }))).toBe("migration_locked true");
    expect(await warehouse.sql("EXISTS conversation_export_m5.schema_lock")).toBe("1");
    const [path, root] = (
      await warehouse.sql(
        "SELECT metadata_path, (SELECT path FROM system.disks WHERE name = 'default') FROM system.tables WHERE database = 'conversation_export_m5' AND name = 'schema_lock'",
      )
    ).split("\t");
    const old = new Date(Date.now() - 3_600_000);
    await utimes(path?.startsWith("/") ? path : `${root}${path}`, old, old);
    expect(await stateOf(migrate({ url }))).toBe("done");
    expect(await warehouse.sql("EXISTS conversation_export_m5.schema_lock")).toBe("0");
  });

  test("a URL without a database or with a user who may not create tables is an error", async () => {
    const { url } = warehouse.stack.clickhouse;
    expect(await stateOf(migrate({ url: new URL("/", url("migrator")).href }))).toBe("config false");
    expect(await stateOf(migrate({ url: `${url("writer")}_m6` }))).toBe("warehouse_unavailable true");
  });
});

describe("rows that were there before a migration", () => {
  test("are found by their conversation and by their external ids", async () => {
    const url = urlOf("m7");
    await migrate({ url });
    const name = (table: string): string => `conversation_export_m7.${table}`;
    // As the tables were before.
    await warehouse.sql(
      `ALTER TABLE ${name("messages")} DROP PROJECTION of_conversation SETTINGS mutations_sync = 2`,
    );
    await warehouse.sql(
      `ALTER TABLE ${name("end_users")} DROP INDEX by_external_id SETTINGS mutations_sync = 2`,
    );
    await warehouse.sql(`ALTER TABLE ${name("clients")} DROP COLUMN rate_limits SETTINGS mutations_sync = 2`);
    await warehouse.sql(`INSERT INTO ${name("messages")} (client_id, date_created, message_id, version, conversation_id, record)
      SELECT 'old', fromUnixTimestamp64Micro(${DAY_0} + number, 'UTC'), toString(number), 1, toString(number % 7), '{}' FROM numbers(5000)`);
    await warehouse.sql(`INSERT INTO ${name("end_users")} (client_id, end_user_id, version, external_ids, record)
      SELECT 'old', leftPad(toString(number), 6, '0'), 1, [concat('x', toString(number))], '{}' FROM numbers(5000)`);
    await warehouse.sql(`INSERT INTO ${name("clients")} (client_id, version) VALUES ('old', 1)`);
    await warehouse.sql(
      `ALTER TABLE ${name("schema_migrations")} DELETE WHERE name LIKE '0005%' SETTINGS mutations_sync = 2`,
    );
    const states = await migrate({ url });
    expect(states.filter(({ state }) => state === "applied").map((one) => one.name.slice(0, 4))).toEqual([
      "0005",
    ]);
    await until("the parts are rewritten", async () => {
      const unfinished = `SELECT count() FROM system.mutations WHERE database = 'conversation_export_m7' AND NOT is_done`;
      return (await warehouse.sql(unfinished)) === "0";
    });
    expect(
      await warehouse.sql(
        "SELECT sum(rows) FROM system.projection_parts WHERE active AND database = 'conversation_export_m7' AND name = 'of_conversation'",
      ),
    ).toBe("5000");
    expect(
      await warehouse.sql(
        "SELECT data_compressed_bytes > 0 FROM system.data_skipping_indices WHERE database = 'conversation_export_m7' AND name = 'by_external_id'",
      ),
    ).toBe("1");
    const reader = createReader({
      url: warehouse.stack.clickhouse
        .url("reader")
        .replace(/\/conversation_export$/, "/conversation_export_m7"),
      application: "test",
    });
    const window = { clientId: "old", since: DAY_0, to: DAY_0 + 5000, pageSize: 100, wholeTies: false };
    const page = await reader.messagesByCreation({ ...window, conversationId: "3" });
    expect(page).toMatchObject({ rows: 100, next: { date: DAY_0 + 3 + 99 * 7 } });
    page.records.destroy();
    const found = await reader.endUsers({ clientId: "old", limit: 10, externalId: "x4711" });
    expect(found).toMatchObject({ rows: 1, next: null });
    found.records.destroy();
    await reader.close();
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
        expect(statement).toMatch(/ENGINE = (Replicated(Replacing)?MergeTree|Distributed)\b/);
      }
      statements.set(kind, (statements.get(kind) ?? 0) + 1);
    }
  }
  // Two for each table.
  expect(statements.get("CreateQuery")).toBeGreaterThanOrEqual(14);
  expect((statements.get("CreateQuery") ?? 0) % 2).toBe(0);
  expect(statements.get("AlterQuery")).toBeGreaterThanOrEqual(7);
});

/** Takes every statement that a store sends, runs none, and answers nothing. */
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
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await work(`http://user:password@127.0.0.1:${port}/conversation_export`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return statements;
};

test("the server parses what else is said to a whole cluster", async () => {
  const topology = { cluster: "main" };
  const signal = new AbortController().signal;
  const statements = await recordStatements(async (url) => {
    const deps = { url, application: "test", topology };
    await migrate(deps);
    const deletion = createDeletion(deps);
    const [partitions, records, replacer] = [
      createPartitionStore(deps),
      createRecordReader(deps),
      createRowReplacer(deps),
    ];
    for (const table of ["conversations", "messages"] as const) {
      const rows = { table, condition: "client_id = {client:String}", parameters: { client: "acme" } };
      await deletion.mask(rows);
      await deletion.erase(rows);
      await deletion.dropMasked(table, "202610");
      await partitions.merge({ table, partition: "202610" });
    }
    await partitions.forget("run");
    await records.forget("run");
    await replacer.start();
    await replacer
      .replace(
        `${BACKFILL_RUN}x`,
        { type: "conversation.exported", insert: [], remove: [], outranked: new Set() },
        {
          uploadedAt: () => DAY_0,
          beforeInsert: () => Promise.reject(new Error("nothing to write")),
          signal,
        },
      )
      .catch(() => []);
    await Promise.all([deletion.close(), partitions.close(), records.close(), replacer.close()]);
  });
  const toAll = statements.filter((statement) => !/^\s*(SELECT|INSERT)\b/.test(statement));
  const kinds = new Set<string>();
  for (const statement of toAll) {
    expect(statement).toMatch(/ON CLUSTER 'main'/);
    const tree = await warehouse.sql(`EXPLAIN AST ${statement.replace(/\{\w+:\w+\}/g, "''")}`);
    kinds.add(tree.split(/\s/, 1)[0] ?? "");
  }
  expect([...kinds]).toEqual(
    expect.arrayContaining(["CreateQuery", "AlterQuery", "DeleteQuery", "OptimizeQuery", "DropQuery"]),
  );
  // What has been applied is known to all servers, whichever is asked.
  const questions = statements.filter((statement) => /schema_migrations/.test(statement));
  expect(questions.filter((one) => /clusterAllReplicas\('main'/.test(one))).not.toEqual([]);
});

describe("columns for analysts", () => {
  test("hold what the record says", async () => {
    const attributes = { client: "columns", time: DAY_0 + 5, partition: 2, offset: 7 };
    const full = conversation(attributes, "full", DAY_0 + 1, DAY_0 + 2, {
      chatter_id: "chatter",
      end_user_id: "user",
      language: "en",
      platform: "web",
      device: "phone",
      browser: "é",
      automated_resolution_classification: "Resolved",
      generated_topic_label: "topic",
      last_agent_id: "agent",
      is_engaged: true,
      is_escalated: false,
      is_test_user: true,
      agent_handle_time: 1.5,
      bot_handle_time: 0,
      csat: { score: 4 },
      handoffs: [
        {
          handoff_id: "h",
          id: "1",
          date_created: "2026-10-04T00:00:00.000009Z",
          name: "n",
          outcome_status: "failed",
          reason_code: "other",
        },
        { id: "2", date_created: "2026-10-04T00:00:00Z" },
      ],
    });
    await warehouse.write([full, conversation(attributes, "empty", DAY_0 + 1, DAY_0 + 2)], DAY_0 + 3);
    const rows = async (table: string, order: string): Promise<unknown[]> =>
      (
        await warehouse.sql(
          `SELECT * FROM ${table} FINAL WHERE client_id = 'columns' ORDER BY ${order} FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 1`,
        )
      )
        .split("\n")
        .map((line) => JSON.parse(line) as unknown);
    const version = String(((BigInt(DAY_0) + 5n) << 64n) | (2n << 48n) | 7n);
    const shared = {
      client_id: "columns",
      date_created: "2026-10-04 00:00:00.000001",
      version,
      exported_at: "2026-10-04 00:00:00.000005",
      uploaded_at: "2026-10-04 00:00:00.000003",
      date_updated: "2026-10-04 00:00:00.000002",
    };
    expect(await rows("conversations", "conversation_id DESC")).toMatchObject([
      {
        ...shared,
        conversation_id: "full",
        chatter_id: "chatter",
        end_user_id: "user",
        language: "en",
        platform: "web",
        device: "phone",
        browser: "é",
        automated_resolution_classification: "Resolved",
        generated_topic_label: "topic",
        last_agent_id: "agent",
        is_engaged: true,
        is_escalated: false,
        is_test_user: true,
        agent_handle_time: 1.5,
        bot_handle_time: 0,
        csat_score: 4,
      },
      {
        ...shared,
        conversation_id: "empty",
        chatter_id: "",
        language: "",
        is_engaged: null,
        is_escalated: null,
        is_test_user: null,
        agent_handle_time: null,
        bot_handle_time: null,
        csat_score: null,
      },
    ]);
    const handoffVersion = String((BigInt(DAY_0 + 9) << 128n) | BigInt(version));
    expect(await rows("handoffs", "target_kind")).toMatchObject([
      {
        conversation_date_created: shared.date_created,
        conversation_id: "full",
        target: "h",
        target_kind: "handoff_id",
        version: handoffVersion,
        uploaded_at: shared.uploaded_at,
        date_created: "2026-10-04 00:00:00.000009",
        name: "n",
        outcome_status: "failed",
        reason_code: "other",
      },
      { target: "2", target_kind: "id", name: "", outcome_status: "", reason_code: null },
    ]);

    await warehouse.write(
      [
        message(attributes, "full", DAY_0 + 1, "c", {
          message_data: { _type: "text", body: "b" },
          sender: "s",
          recipient: "r",
          answer_id: "None",
          in_response_to: "i",
          link_was_clicked: false,
          review: 5,
        }),
        message(attributes, "odd", DAY_0 + 1, "c", { review: 300 }),
        message(attributes, "strange", DAY_0 + 1, "c", { review: -1 }),
      ],
      DAY_0 + 3,
    );
    const { date_updated: _, ...ofMessage } = shared;
    const [first, ...odd] = await rows("messages", "message_id");
    expect(first).toMatchObject({
      ...ofMessage,
      message_id: "full",
      conversation_id: "c",
      sender: "s",
      recipient: "r",
      message_type: "text",
      answer_id: "None",
      in_response_to: "i",
      link_was_clicked: false,
      review: 5,
    });
    // Never another number than the record's.
    for (const row of odd as { review: number | null; record: string }[]) {
      expect([null, (JSON.parse(row.record) as { review: number }).review]).toContain(row.review);
    }
  });
});

describe("clients and keys, in unmerged parts", () => {
  test("the latest change of a client or a key counts", async () => {
    let now = 1_000;
    const { url } = warehouse.stack.clickhouse;
    const store = createClientStore({ url: url("writer"), application: "test", now: () => now });
    const reader = createReader({ url: url("reader"), application: "test" });
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
    // What cannot be read counts as not given.
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
    await store.close();
    await reader.close();
  });
});
