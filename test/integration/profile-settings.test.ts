import { createReader, createSession, PINNED_SETTINGS } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ops } from "../system/ops.ts";
import { WAYS, WINDOW, writeEveryWay } from "../warehouse/every-way-data.ts";
import { readEverything, waysToRead } from "../warehouse/read-everything.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

/** Each changes answers without an error where a statement does not say otherwise. */
const PROFILE = {
  limit: "10",
  offset: "1",
  extremes: "1",
  join_use_nulls: "1",
  transform_null_in: "1",
  aggregate_functions_null_for_empty: "1",
  empty_result_for_aggregation_by_empty_set: "1",
  final: "1",
  use_query_cache: "1",
};

let warehouse: Warehouse;
/** As a user sees it whose profile is as it comes. */
let expected: Record<string, unknown>;
beforeAll(async () => {
  warehouse = await startWarehouse({ testRights: { profiles: { reader: PROFILE, lookup: PROFILE } } });
  await writeEveryWay(warehouse);
  const plain = warehouse.session("migrator");
  expected = await readEverything(waysToRead(createReader({ session: plain, lookups: plain }), WINDOW, WAYS));
});
afterAll(() => warehouse?.stop());

describe("settings in the profiles of the users who read", () => {
  it("change nothing of what is read", async () => {
    for (const [way, read] of Object.entries(expected)) expect(read, way).not.toBeInstanceOf(Error);
    expect(expected["key"]).toMatchObject({ clientId: "acme" });
    expect(await readEverything(waysToRead(warehouse.reader, WINDOW, WAYS))).toEqual(expected);
  });

  it("would change what is read, if statements did not name them", async () => {
    const open = (user: "reader" | "lookup") =>
      createSession({ url: warehouse.stack.clickhouse.url(user), application: "test", settings: {} });
    const [session, lookups] = [open("reader"), open("lookup")];
    try {
      const read = await readEverything(waysToRead(createReader({ session, lookups }), WINDOW, WAYS));
      for (const way of Object.keys(expected)) expect(read[way], way).not.toEqual(expected[way]);
    } finally {
      await Promise.all([session.close(), lookups.close()]);
    }
  });

  it("are sent with the values that ClickHouse has by default", async () => {
    const names = Object.keys(PINNED_SETTINGS).map((name) => `'${name}'`);
    const known = await warehouse.sql(
      `SELECT name, default FROM system.settings WHERE name IN (${names.join(", ")}) FORMAT TSVRaw`,
    );
    const defaults = known.split("\n").map((line) => line.split("\t"));
    expect(Object.fromEntries(defaults.map(([name, value = ""]) => [name, value]))).toEqual(PINNED_SETTINGS);
  });

  it("are named by doctor", async () => {
    const env = {
      CLICKHOUSE_URL: warehouse.stack.clickhouse.url("migrator"),
      CLICKHOUSE_READER_URL: warehouse.stack.clickhouse.url("reader"),
      CLICKHOUSE_WRITER_URL: warehouse.stack.clickhouse.url("writer"),
    };
    // It fails, since only ClickHouse runs, and tells all the same.
    const { stdout } = await ops(env, "doctor", "--json").then(
      (text) => ({ stdout: text }),
      (error: unknown) => error as { stdout: string },
    );
    const findings = JSON.parse(stdout) as { name: string; state: string; found: string }[];
    const warned = (user: string): string[] =>
      findings.flatMap(({ name, state, found }) =>
        name === user && state !== "ok" && !found.startsWith("needs") ? [found] : [],
      );
    const { limit, offset, ...others } = PROFILE;
    const named = Object.entries(others).map(([name, value]) => `${name} = ${value}`);
    expect(warned("user reader")).toEqual([
      `its profile sets ${named.toSorted().join(", ")}, limit = ${limit}, offset = ${offset}`,
    ]);
    expect(warned("user writer")).toEqual([]);
    expect(warned("user migrator")).toEqual([]);
  });
});
