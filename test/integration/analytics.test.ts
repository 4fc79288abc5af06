import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ANALYTICS_VIEWS, createInspector, migrate } from "@conversation-export/warehouse";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { blocksOf, runCommands } from "../documents/guide-commands.ts";
import { readSupportDashboard } from "../documents/watch-files.ts";
import { preparePythonTools } from "../outside/python-tools.ts";
import { SHARDS } from "../system/shards.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { fillSql } from "../warehouse/fill-sql.ts";
import { conversation, DAY, DAY_0, endUser, message, SECOND } from "../warehouse/records.ts";
import { readView, VIEWS } from "../warehouse/view-rows.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/analytics.md"), "utf8");
const CLIENTS = ["acme", "globex"];
const NATIVE = join(import.meta.dirname, "../outside/native-query.py");
const run = promisify(execFile);

let warehouse: Warehouse;
let tools: Promise<string>;
beforeAll(async () => {
  // The tools install while other tests run.
  tools = SHARDS > 1 ? Promise.resolve("") : preparePythonTools("clickhouse");
  tools.catch(() => undefined);
  warehouse = await startWarehouse({ testRights: { clientUsers: CLIENTS } });
  for (const client of CLIENTS) {
    const at = { client, time: DAY_0 + 30 * DAY };
    const begun = (day: number) => DAY_0 + day * DAY;
    await warehouse.write(
      [0, 1, 2, 3].map((day) =>
        conversation(at, `${client}-${day}`, begun(day), begun(day) + SECOND, {
          platform: "web",
          is_engaged: true,
          is_escalated: day === 0,
          automated_resolution_classification: day === 0 ? "Not Resolved" : "Resolved",
          csat: { score: day + 1 },
          handoffs: [
            {
              name: "Desk",
              handoff_id: "desk",
              id: "a",
              date_created: new Date((begun(day) + 90 * SECOND) / 1_000).toISOString(),
              outcome_status: "succeeded",
              reason_code: "other",
            },
          ],
        }),
      ),
    );
    await warehouse.write([message(at, `${client}-m`, begun(0), `${client}-0`)]);
    await warehouse.write([endUser(at, `${client}-u`)]);
  }
  await warehouse.sql("SYSTEM START MERGES");
  for (const table of ["conversations", "handoffs", "messages", "end_users"])
    await warehouse.sql(`OPTIMIZE TABLE ${table} FINAL`);
});
afterAll(() => warehouse?.stop());

const asAnalyst = (sql: string): Promise<string> => warehouse.sql(sql, "analyst");

it("has every column of the dictionary, with its type and comment", async () => {
  const shown = await asAnalyst(
    `SELECT table, name, type, comment FROM system.columns WHERE database = '${VIEWS}'
     ORDER BY table, position FORMAT JSONCompactEachRow SETTINGS print_pretty_type_names = 0`,
  );
  const expected = ANALYTICS_VIEWS.toSorted((a, b) => (a.name < b.name ? -1 : 1)).flatMap(
    ({ name: view, columns }) => columns.map(({ name, type, comment }) => [view, name, type, comment]),
  );
  expect(shown.split("\n").map((line) => JSON.parse(line) as unknown)).toEqual(expected);
});

test("every question of docs/analytics.md runs as it stands, and ClickHouse reads the other statements", async () => {
  const blocks = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.split(/;$/m));
  const statements = blocks.map((one) => one.trim()).filter((one) => one !== "");
  const questions = statements.filter((one) => /^SELECT/m.test(one));
  expect(questions.length).toBeGreaterThan(2);
  for (const question of questions) await expect(asAnalyst(question), question).resolves.toBeDefined();
  // The local server keeps no users made by SQL.
  for (const one of statements.filter((other) => !questions.includes(other)))
    await expect(warehouse.sql(`SELECT formatQuery($$${one}$$)`), one).resolves.toMatch(/^(CREATE|GRANT)/);
});

test("the request of docs/analytics.md is answered as it stands", async () => {
  const [block = ""] = blocksOf("analytics.md", "Ask a question");
  const url = warehouse.stack.clickhouse.url("analyst");
  const env = { CLICKHOUSE_ANALYST_URL: url, CLIENT_ID: CLIENTS[0] ?? "" };
  expect(await runCommands(env, block.replace(/^\. .*\n/, ""))).toMatch(/│ +4 │/);
});

const filled = (sql: string): string =>
  fillSql(sql, {
    range: { from: Date.parse("2026-10-01T00:00:00Z"), to: Date.parse("2026-11-01T00:00:00Z") },
    variables: { database: [VIEWS], client: CLIENTS },
  });

const targets = readSupportDashboard().panels.flatMap(({ title, targets: asked = [] }) =>
  asked.map(({ rawSql }) => ({ title, rawSql })),
);

test.each(targets)("the dashboard's panel $title has an answer", async ({ rawSql }) => {
  const rows = (await asAnalyst(`${filled(rawSql)} FORMAT JSONCompactEachRow`)).split("\n");
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(JSON.parse(row)).not.toContain(null);
});

test("the dashboard's figures are those of the records", async () => {
  const answer = async (title: string): Promise<string> => {
    const target = targets.find((one) => one.title === title);
    return asAnalyst(`${filled(target?.rawSql ?? "")} FORMAT TSV`);
  };
  expect(await answer("Conversations")).toBe("8");
  expect(await answer("Containment")).toBe("0.75");
  expect(await answer("Automated resolution")).toBe("0.75");
  expect(await answer("CSAT")).toBe("2.5");
  expect(await answer("Time to hand off")).toBe("90");
  expect(await answer("Handoffs by reason")).toBe("other\t8");
});

/** Unlike `runSql`: a client may send no settings with a query. */
const asClient = async (client: string, sql: string): Promise<string> => {
  const { origin, password, pathname } = new URL(warehouse.stack.clickhouse.url("analyst"));
  const response = await fetch(`${origin}/?database=${pathname.slice(1)}`, {
    method: "POST",
    body: sql,
    headers: { "x-clickhouse-user": `client_${client}`, "x-clickhouse-key": decodeURIComponent(password) },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`ClickHouse: ${text}`);
  return text.trim();
};

/** ClickHouse 25.8 does not. */
const knowsWhoLoggedIn = async (): Promise<boolean> => {
  const known = "SELECT count() FROM system.functions WHERE name = 'authenticatedUser' FORMAT TSV";
  return (await runSql(warehouse.stack.clickhouse.url("migrator"), known)).trim() === "1";
};

it.skipIf(SHARDS > 1)("a client is refused by a server that does not say who logged in", async (context) => {
  context.skip(await knowsWhoLoggedIn(), "this server does");
  const asked = asClient("acme", `SELECT count() FROM ${VIEWS}.conversations`);
  await expect(asked).rejects.toThrow("update it and run export-ops migrate");
});

it.skipIf(SHARDS > 1)(
  "views that were made for another kind of server are reported, until migrations run again",
  async () => {
    const url = warehouse.stack.clickhouse.url("migrator");
    const inspector = createInspector({ url, application: "test", topology: warehouse.topology });
    try {
      expect(await inspector.wrongViews()).toEqual([]);
      const made = (await knowsWhoLoggedIn())
        ? "a ClickHouse with the function authenticatedUser: update"
        : "authenticatedUser()";
      await runSql(
        url,
        `ALTER TABLE ${VIEWS}.messages MODIFY COMMENT 'users of clients need ${made} it and run export-ops migrate'`,
      );
      expect(await inspector.wrongViews()).toEqual(["messages"]);
      await migrate({ url, topology: warehouse.topology });
      expect(await inspector.wrongViews()).toEqual([]);
    } finally {
      await inspector.close();
    }
  },
);

describe.skipIf(SHARDS > 1)("a client", () => {
  beforeEach(async (context) =>
    context.skip(!(await knowsWhoLoggedIn()), "this server does not say who logged in"),
  );

  it.each(ANALYTICS_VIEWS.map(({ name }) => name))("finds the own rows alone in %s", async (view) => {
    for (const client of CLIENTS) {
      const seen = await asClient(
        client,
        `SELECT client_id, count() > 0 FROM ${VIEWS}.${view} GROUP BY client_id`,
      );
      expect(seen).toBe(`${client}\t1`);
    }
    expect(await asClient("acme", `SELECT count() FROM ${VIEWS}.${view} WHERE client_id = 'globex'`)).toBe(
      "0",
    );
  });

  it.each([
    "SELECT count() FROM v WHERE throwIf(client_id != 'acme') = 0",
    "SELECT count() FROM v WHERE throwIf(conversation_id LIKE 'globex%') = 0",
    "SELECT count() FROM v GROUP BY throwIf(client_id != 'acme')",
    "SELECT any(4) FROM (SELECT throwIf(client_id != 'acme') AS seen FROM v) WHERE seen = 0",
    "SELECT count() FROM v AS a JOIN (SELECT 0 AS zero) AS b ON throwIf(a.client_id != 'acme') = b.zero",
    "SELECT count() FROM (SELECT 0 AS zero) AS b RIGHT JOIN v AS a ON throwIf(a.client_id != 'acme') = b.zero",
    "SELECT count() FROM v AS a WHERE throwIf(a.client_id != 'acme') IN (SELECT 0)",
    "SELECT uniq(conversation_id) FROM (SELECT * FROM v ORDER BY throwIf(client_id != 'acme') LIMIT 4)",
  ])("learns nothing of others by an error: %s", async (sql) => {
    expect(await asClient("acme", sql.replace(/(?<=FROM |JOIN )v\b/, `${VIEWS}.conversations`))).toBe("4");
  });

  it.each([
    "query_plan_enable_optimizations = 1",
    "query_plan_filter_push_down = 0",
    "enable_analyzer = 0",
    "additional_table_filters = {'conversation_export.conversations': 'throwIf(client_id = 1)'}",
  ])("cannot change a setting: %s", async (setting) => {
    const sql = `SELECT count() FROM ${VIEWS}.conversations SETTINGS ${setting}`;
    await expect(asClient("acme", sql)).rejects.toThrow("READONLY");
  });

  it.each(["", "analyst", "client_globex"])("finds no more when a secondary query names %j", async (name) => {
    const python = join(await tools, "python");
    const { tcpPort, passwords } = warehouse.stack.clickhouse;
    const asked = [
      ["client_acme", `SELECT DISTINCT client_id FROM ${VIEWS}.conversations WHERE client_id != 'acme'`],
      ["analyst", `SELECT count() > 0 FROM ${VIEWS}.conversations WHERE client_id = 'globex'`],
    ] as const;
    const found: unknown[] = [];
    for (const [user, sql] of asked) {
      const { stdout } = await run(python, [NATIVE, String(tcpPort), user, passwords.analyst, name, sql]);
      found.push(JSON.parse(stdout));
    }
    expect(found).toEqual([[], [[1]]]);
  });

  it("reads no table", async () => {
    await expect(asClient("acme", "SELECT count() FROM messages")).rejects.toThrow("ACCESS_DENIED");
  });
});

it("comes back when a view is gone or another one is in its place", async () => {
  const idsOf = async () =>
    (await readView(warehouse, "conversations")).map((row) => String(row["conversation_id"])).toSorted();
  const before = await idsOf();
  await warehouse.sql(`DROP VIEW ${VIEWS}.messages`);
  await warehouse.sql(`CREATE OR REPLACE VIEW ${VIEWS}.conversations AS SELECT 1 AS one`);
  await migrate({ url: warehouse.stack.clickhouse.url("migrator"), topology: warehouse.topology });
  expect(await idsOf()).toEqual(before);
  expect(await readView(warehouse, "messages")).toHaveLength(CLIENTS.length);
});

it("leaves a table alone that has the name of a view", async () => {
  const deps = { url: warehouse.stack.clickhouse.url("migrator"), topology: warehouse.topology };
  await warehouse.sql(`DROP VIEW ${VIEWS}.messages`);
  await warehouse.sql(`CREATE TABLE ${VIEWS}.messages (one UInt8) ENGINE = MergeTree ORDER BY one`);
  await expect(migrate(deps)).rejects.toThrow("has tables with their names: messages");
  expect(await warehouse.sql(`SELECT count() FROM ${VIEWS}.messages`)).toBe("0");
  await warehouse.sql(`DROP TABLE ${VIEWS}.messages`);
  await migrate(deps);
  expect(await readView(warehouse, "messages")).toHaveLength(CLIENTS.length);
});
