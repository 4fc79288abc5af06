import { FIXED_SETTINGS, VIEW_LIMITS, viewProfile } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Finding, findingsOfDoctor, ops } from "../system/ops.ts";
import { SHARDS } from "../system/shards.ts";
import { conversation, DAY, DAY_0, endUser, message, SECOND } from "../warehouse/records.ts";
import { VIEWS } from "../warehouse/view-rows.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

const ROWS = `SELECT 'conversations', conversation_id FROM ${VIEWS}.conversations
  UNION ALL SELECT 'messages', message_id FROM ${VIEWS}.messages
  UNION ALL SELECT 'end_users', end_user_id FROM ${VIEWS}.end_users`;
const SHOWN = [
  "conversations live",
  "conversations moved",
  "end_users live",
  "messages live",
  "messages moved",
];

const beyond = (rows: readonly string[]): string[] =>
  rows.filter((row, at) => !SHOWN.includes(row) || rows.indexOf(row) < at);

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse({
    testRights: {
      clientUsers: ["acme", "globex"],
      analysts: {
        loose: { readonly: "2" },
        opened: { readonly: "2", apply_deleted_mask: "0" },
        client_unbounded: { readonly: "1", query_plan_enable_optimizations: "0" },
        Client_acme: { readonly: "1" },
      },
    },
  });
  const write = async (ids: readonly string[], round: number): Promise<void> => {
    const at = { client: "acme", time: DAY_0 + (30 + round) * DAY };
    const date = (id: string): number => DAY_0 + (id === "moved" ? round : 0) * DAY;
    await warehouse.write(ids.map((id) => conversation(at, id, date(id), date(id) + SECOND)));
    await warehouse.write(ids.map((id) => message(at, id, date(id), id)));
    await warehouse.write(ids.filter((id) => id !== "moved").map((id) => endUser(at, id)));
  };
  await write(["deleted"], 0);
  // A deletion waits for merges.
  await warehouse.sql("SYSTEM START MERGES");
  for (const [table, id] of Object.entries({ conversations: "conversation_id", messages: "message_id" }))
    await warehouse.sql(`DELETE FROM ${table} WHERE ${id} = 'deleted'`);
  await warehouse.sql("DELETE FROM end_users WHERE end_user_id = 'deleted'");
  await warehouse.sql("SYSTEM STOP MERGES");
  for (const round of [0, 1, 2]) await write(["live", "hidden", "moved"], round);
  await warehouse.sql(`INSERT INTO erasure_keys (client_id, kind, id, created_before, request_id, phase)
    SELECT 'acme', arrayJoin(['conversation', 'message', 'end_user_id']), 'hidden', '2030-01-01', 'r', 'erased'`);
  await warehouse.sql(`INSERT INTO moved_dates (client_id, kind, date_created)
    SELECT 'acme', arrayJoin(['conversation', 'message']), toDateTime64('2026-10-04', 6, 'UTC') + INTERVAL arrayJoin([0, 1, 2]) DAY`);
});
afterAll(() => warehouse?.stop());

const urlOf = (user: string): URL => {
  const url = new URL(warehouse.stack.clickhouse.url("analyst"));
  url.username = user;
  return url;
};

const ask = async (
  user: string,
  sql: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<string[] | string> => {
  const { origin, password } = urlOf(user);
  const response = await fetch(`${origin}/?${new URLSearchParams(settings).toString()}`, {
    method: "POST",
    body: sql,
    headers: { "x-clickhouse-user": user, "x-clickhouse-key": decodeURIComponent(password) },
  });
  const text = (await response.text()).trim();
  return response.ok
    ? text
        .split("\n")
        .map((line) => line.replaceAll("\t", " "))
        .toSorted()
    : text;
};

/** Values that show more than the views do; null: none found. */
const REVEALING: Readonly<Record<string, Readonly<Record<string, string>> | null>> = {
  additional_table_filters: { additional_table_filters: "{'conversation_export.erasure_keys':'0'}" },
  apply_deleted_mask: { apply_deleted_mask: "0" },
  group_by_overflow_mode: {
    group_by_overflow_mode: "break",
    max_rows_to_group_by: "1",
    max_block_size: "1",
    max_threads: "1",
  },
  join_overflow_mode: {
    join_overflow_mode: "break",
    max_rows_in_join: "1",
    max_block_size: "1",
    max_threads: "1",
  },
  read_overflow_mode: { read_overflow_mode: "break", max_rows_to_read: "1" },
  read_overflow_mode_leaf: { read_overflow_mode_leaf: "break", max_rows_to_read_leaf: "1" },
  set_overflow_mode: { set_overflow_mode: "break", max_rows_in_set: "1" },
  timeout_overflow_mode: null,
  timeout_overflow_mode_leaf: null,
  transfer_overflow_mode: null,
};

const findingsWith = (user: string): Promise<Finding[]> =>
  findingsOfDoctor({
    CLICKHOUSE_URL: warehouse.stack.clickhouse.url("migrator"),
    CLICKHOUSE_ANALYST_URL: urlOf(user).href,
  });
const findingsOf = async (user: string): Promise<Finding[]> =>
  (await findingsWith(user)).filter(({ name }) => name === "user analyst");
const WARNED = "may change settings by which a view shows erased and hidden records: ";

describe.skipIf(SHARDS > 1)("settings of a query that show what a view leaves out", () => {
  it("are all tried", () => {
    expect(Object.keys(REVEALING)).toEqual(Object.keys(FIXED_SETTINGS));
  });

  it.each(Object.entries(REVEALING))("%s", async (name, settings) => {
    if (settings !== null) {
      const shown = await ask("loose", ROWS, settings);
      expect(Array.isArray(shown) ? beyond(shown) : shown).toContainEqual(
        expect.stringMatching(/hidden|deleted|moved/),
      );
    }
    expect(await ask("analyst", ROWS, settings ?? { [name]: "break" })).toContain("should not be changed");
  });

  it("cannot be opened by raising readonly", async () => {
    for (const readonly of ["0", "1"])
      expect(await ask("analyst", ROWS, { readonly, apply_deleted_mask: "0" })).toMatch(
        /READONLY|should not be changed/,
      );
  });

  it("leave others to tools, which show nothing more", async () => {
    for (const user of ["analyst", "loose"]) {
      expect(await ask(user, ROWS)).toEqual(SHOWN);
      expect(await ask(user, ROWS, { max_threads: "1", join_use_nulls: "1" })).toEqual(SHOWN);
    }
  });

  it("are named by doctor where the user may change them", async () => {
    const [warned, unbounded] = (await findingsOf("loose")).filter(({ state }) => state === "warning");
    expect(warned?.found).toBe(WARNED + Object.keys(FIXED_SETTINGS).toSorted().join(", "));
    expect(unbounded?.found).toContain("has no limit of max_execution_time, ");
    expect(await findingsOf("analyst")).toContainEqual(
      expect.objectContaining({ state: "ok", found: "cannot show what the views leave out by a setting" }),
    );
  });

  it("are named by doctor where a profile has set them", async () => {
    expect(await ask("opened", ROWS)).toContain("messages deleted");
    expect((await findingsOf("opened")).find(({ state }) => state === "warning")?.found).toContain(
      "apply_deleted_mask",
    );
  });

  it("are fixed by a statement that is printed with the grants, and that ClickHouse reads", async () => {
    const migrator = { CLICKHOUSE_URL: warehouse.stack.clickhouse.url("migrator") };
    const printed = await ops(migrator, "grants", "--analyst");
    const [statement = ""] = printed.split(";").filter((one) => one.includes("ALTER USER"));
    const read = await warehouse.sql(`SELECT formatQuerySingleLine($$${statement}$$) FORMAT TSVRaw`);
    expect(read).toMatch(/^ALTER USER analyst /);
    expect(read).not.toMatch(/DROP/);
    for (const [name, value] of Object.entries(FIXED_SETTINGS))
      expect(read).toMatch(new RegExp(`\\b${name}${value === null ? "" : ` = '?${value}'?`} CONST`));
  });
});

const BOOLEANS: Readonly<Record<string, string>> = { false: "0", true: "1" };

describe.skipIf(SHARDS > 1)("users of clients", () => {
  it("are found by doctor where they are not bounded, or take another name", async () => {
    const found = (await findingsWith("analyst")).filter(({ name }) => /client_/i.test(name));
    const limits = Object.keys(VIEW_LIMITS).join(", ");
    // Neither acme nor globex, which have the profile.
    expect(found).toMatchObject([
      { name: "user Client_acme", state: "problem", found: expect.stringContaining("sees all clients") },
      { name: "user client_unbounded", state: "problem", found: `has no limit of ${limits}` },
    ]);
  });

  it("have in users.xml what grants prints, which ClickHouse reads", async () => {
    const migrator = { CLICKHOUSE_URL: warehouse.stack.clickhouse.url("migrator") };
    const printed = (await ops(migrator, "grants", "--client", "acme"))
      .split(";\n")
      .filter((one) => one.trim());
    const read = await Promise.all(
      printed.map((one) => warehouse.sql(`SELECT formatQuerySingleLine($$${one}$$) FORMAT TSVRaw`)),
    );
    expect(read.map((one) => /^[A-Z]+(?: SETTINGS PROFILE| USER)?/.exec(one)?.[0])).toEqual([
      "CREATE SETTINGS PROFILE",
      "ALTER SETTINGS PROFILE",
      "ALTER USER",
      "GRANT",
    ]);
    const [, profile = ""] = read;
    for (const { name, value } of viewProfile("client")) {
      expect(profile).toMatch(new RegExp(`\\b${name}${value === null ? "" : ` = '?${value}'?`}`));
      const [inEffect = ""] = await ask("client_acme", `SELECT toString(getSetting('${name}'))`);
      expect(BOOLEANS[inEffect] ?? inEffect, name).toBe(value ?? "{}");
      if (name !== "readonly") expect(profile).toMatch(new RegExp(`\\b${name}(?: = \\S+)? CONST`));
    }
  });
});

/** ClickHouse 26.7 knows the statement but allows it to nobody by default; 25.8 does not know it. */
it.each(["analyst", "migrator", "reader", "client_globex"])("EXECUTE AS %s is refused", async (user) => {
  for (const sql of [`EXECUTE AS ${user} SELECT 1`, `EXECUTE AS ${user}`])
    for (const asker of ["client_acme", "analyst"])
      expect(await ask(asker, sql)).toMatch(/SUPPORT_IS_DISABLED|ACCESS_DENIED|SYNTAX_ERROR/);
});
