import {
  createAuditStore,
  createErasureStore,
  createReader,
  createSession,
  PINNED_SETTINGS,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findingsOfDoctor } from "../system/ops.ts";
import { WAYS, WINDOW, writeEveryWay } from "../warehouse/every-way-data.ts";
import { readEverything, waysToRead } from "../warehouse/read-everything.ts";
import { DAY_0, message } from "../warehouse/records.ts";
import { uploadNow } from "../warehouse/upload-now.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

/** For all users: statements that write, or read in order to delete, would lose rows or values. */
const OF_ALL = {
  input_format_allow_errors_num: "10",
  input_format_defaults_for_omitted_fields: "0",
  join_default_strictness: "ANY",
  wait_for_async_insert: "0",
};

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
  enable_parallel_replicas: "1",
  parallel_replicas_mode: "sampling_key",
  any_join_distinct_right_table_keys: "1",
  compatibility: "25.7",
  date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands: "1",
  date_time_output_format: "iso",
  distributed_group_by_no_merge: "1",
  do_not_merge_across_partitions_select_final: "1",
  enable_named_columns_in_function_tuple: "1",
  insert_shard_id: "1",
  output_format_json_array_of_rows: "1",
  output_format_json_map_as_array_of_tuples: "1",
  output_format_json_quote_64bit_floats: "1",
  output_format_json_quote_64bit_integers: "1",
  output_format_tsv_crlf_end_of_line: "1",
  prefer_column_name_to_alias: "1",
  session_timezone: "Asia/Tokyo",
};

/** Cuts fractions to one digit; not every ClickHouse knows it, so statements cannot name it. */
const ROUNDED = { output_format_float_precision: "1" };

/** Parallel replicas that read samples see tables without a sampling key as empty. */
const SECOND_REPLICA = { parallel_replicas_count: "2", parallel_replica_offset: "1" };

let warehouse: Warehouse;
let expected: Record<string, unknown>;
beforeAll(async () => {
  const reading = { ...PROFILE, ...SECOND_REPLICA };
  const profiles = { default: { ...OF_ALL, ...ROUNDED }, reader: reading, lookup: reading };
  warehouse = await startWarehouse({ testRights: { profiles } });
  await writeEveryWay(warehouse);
  const plain = warehouse.session("migrator");
  expected = await readEverything(waysToRead(createReader({ session: plain, lookups: plain }), WINDOW, WAYS));
});
afterAll(() => warehouse?.stop());

describe("settings in the profiles of the users who read", () => {
  it("change nothing of what is read", async () => {
    for (const [way, read] of Object.entries(expected)) expect(read, way).not.toBeInstanceOf(Error);
    expect(expected["key"]).toMatchObject({ clientId: "acme" });
    expect(expected["messagesByCreation"]).toHaveProperty("length", 151);
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

  it("leave out nothing of what an erasure collects", async () => {
    const store = createErasureStore({ session: warehouse.session("jobs"), runUpload: uploadNow });
    const at = { client: "erasing", time: DAY_0 };
    await warehouse.write(
      Array.from({ length: 20 }, (_, n) => message(at, `m${n}`, DAY_0 + n, "c", { sender: "ann" })),
    );
    const ann = { clientId: "erasing", subject: "chatter_id:ann", createdBefore: Date.now() * 1000 };
    const run = { id: "run", erases: false };
    await store.note(run, [{ ...ann, requestId: "r" }]);
    await store.collect(run);
    expect(await store.count(run)).toEqual({ conversations: 0, messages: 20, end_users: 0 });
  });

  it("do not date what is audited otherwise", async () => {
    const note = { runId: "r", state: "done", actor: "a", command: "c", arguments: {}, result: "" } as const;
    await createAuditStore({ session: warehouse.session("jobs") }).note([note]);
    const { last } = createAuditStore({ session: warehouse.session("migrator") });
    expect(await last()).toEqual([{ command: "c", state: "done", ageSeconds: expect.any(Number) }]);
    await warehouse.sql(
      `INSERT INTO audit (run_id, state, command, at)
       SELECT 't', if(number = 0, 'done', 'failed'), 'timed', now64(6) - toIntervalMillisecond(345 * number)
       FROM numbers(2)`,
      "jobs",
    );
    const ages = (await last()).filter(({ command }) => command === "timed").map((one) => one.ageSeconds);
    expect((ages[1] ?? 0) - (ages[0] ?? 0)).toBeCloseTo(0.345, 6);
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
    const findings = await findingsOfDoctor(env);
    const warned = (user: string): string[] =>
      findings.flatMap(({ name, state, found }) =>
        name === user && state !== "ok" && !found.startsWith("needs") ? [found] : [],
      );
    const { limit, offset, ...others } = PROFILE;
    const sets = (settings: Readonly<Record<string, string>>): string =>
      `its profile sets ${Object.entries(settings)
        .map(([name, value]) => `${name} = ${value}`)
        .toSorted()
        .join(", ")}`;
    expect(warned("user reader")).toEqual([
      `${sets({ ...OF_ALL, ...others })}, limit = ${limit}, offset = ${offset}`,
    ]);
    expect(warned("user writer")).toEqual([sets(OF_ALL)]);
    expect(warned("user migrator")).toEqual([sets(OF_ALL)]);
  });
});
