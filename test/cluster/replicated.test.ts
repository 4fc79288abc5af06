import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareExports } from "../compare/compare-exports.ts";
import { fetchPatiently } from "../compare/patient-fetch.ts";
import { createRestlessReaders, EVER, type RestlessReaders } from "../compare/restless-readers.ts";
import { walk } from "../compare/walk.ts";
import { fold } from "../reference/index.ts";
import { handMade } from "../sample/hand-made.ts";
import { createRandom } from "../sample/values/random.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { ops } from "../system/ops.ts";
import { requestErasure } from "../system/request-erasure.ts";
import { clusterVariables } from "../system/shards.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";
import { runSql } from "../system/warehouse-sql.ts";

const CLIENT = "acme";
const LOAD_MS = bySize(30_000, 300_000);
const DEADLINE_MS = 60_000;
const INGEST = { BATCH_MAX_RECORDS: "200", BATCH_MAX_AGE_MS: "100", WATERMARK_INTERVAL_MS: "300" };

// Only a whole server replicates; the one of other tests has no port for parts.
const isWhole = process.env["CLICKHOUSE_LIBRARY"]?.endsWith(".abi3.so") ?? false;
if (!isWhole)
  console.warn("NOT TRIED: replication. Name the library of chdb 3.7, _chdb.abi3.so, in CLICKHOUSE_LIBRARY");

let system: System;
let delivery: Delivery;
let readers: RestlessReaders;
let key: string;

const server = (index: number): System["stack"]["clickhouse"] => {
  const found = system.stack.clickhouseShards[index];
  if (found === undefined) throw new Error(`there is no server ${index}`);
  return found;
};
const sqlAt = (index: number, sql: string): Promise<string> => runSql(server(index).url("migrator"), sql);
const ID_OF = {
  conversations: "conversation_id",
  conversation_updates: "conversation_id",
  handoffs: "conversation_id",
  messages: "message_id",
  end_users: "end_user_id",
  landing: "record_id",
} as const;
const TABLES = [...Object.keys(ID_OF), "record_dates"];
const doctor = (): Promise<string> =>
  ops(
    {
      ...clusterVariables(system.stack),
      ...system.environment("jobs"),
      CLICKHOUSE_URL: server(0).url("migrator"),
      CLICKHOUSE_WRITER_URL: server(0).url("writer"),
    },
    "doctor",
  ).catch((error: { stdout?: string }) => error.stdout ?? "");

const CREATED = "2026-10-20T12:00:00Z";
const publish = async (id: string, data: object = {}): Promise<void> => {
  await delivery.send([
    handMade({
      kind: "conversation",
      client: CLIENT,
      id,
      time: new Date().toISOString(),
      data: { _id: id, date_created: CREATED, ...data },
    }),
  ]);
};
const untilRefused = async (): Promise<void> => {
  const refused = (): Promise<string> =>
    sqlAt(0, "SELECT sum(value) FROM system.errors WHERE name = 'TOO_FEW_LIVE_REPLICAS' FORMAT TSV");
  const before = await refused();
  await until("an INSERT was refused", DEADLINE_MS, async () => (await refused()) !== before);
};
const hasAt = async (url: string, id: string): Promise<boolean> =>
  (await walk(`${url}/v2/export/conversations?${EVER}`, key)).some((text) => text.includes(`"${id}"`));

describe.skipIf(!isWhole)("replicas of ClickHouse with Keeper", () => {
  let apiUrls: readonly string[];

  beforeAll(async () => {
    const seed = seedOfRun("replicated");
    const random = createRandom(seed, "replicated");
    system = await startSystem("test-replicated", { shards: 2, areReplicas: true, hasKeeper: true });
    key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
    delivery = createDelivery(system);
    await Promise.all([
      system.service("ingest", INGEST),
      system.service("export-api"),
      system.service("jobs", { ...NO_SCHEDULES, ERASURE_INTERVAL_SECONDS: "1" }),
    ]);
    const other = await system.anotherApi({
      CLICKHOUSE_URL: server(1).url("reader"),
      CLICKHOUSE_LOOKUP_URL: server(1).url("lookup"),
      CLICKHOUSE_INTAKE_URL: server(1).url("intake"),
    });
    apiUrls = [system.apiUrl, other.apiUrl];
    readers = createRestlessReaders({
      system,
      delivery,
      random,
      seed,
      client: CLIENT,
      key,
      records: bySize(1_000, 5_000),
    });
    await readers.begin();
  });
  afterAll(() => system?.stop());

  it("hold the same rows, and hide nothing behind a watermark", async () => {
    const { events, walks, compared } = await readers.load(LOAD_MS);
    await system.caughtUp(DEADLINE_MS);
    await readers.settle();
    for (const apiUrl of apiUrls)
      expect(await compareExports(apiUrl, fold(delivery.delivered), new Map([[CLIENT, key]]))).toEqual([]);
    for (const table of TABLES) {
      const rows = `SELECT count(), sum(cityHash64(*)) FROM ${table}_local FINAL FORMAT TSV`;
      const [first, second] = await Promise.all([0, 1].map((index) => sqlAt(index, rows)));
      expect(first, table).toBe(second);
    }
    console.log(`${events} events, ${walks} walks by creation, ${compared} records compared under load`);
    expect(walks).toBeGreaterThan(0);
    expect(compared).toBeGreaterThan(0);
  });

  it("satisfy doctor", async () => {
    const report = await doctor();
    expect(report).toMatch(/ok +ClickHouse +replicas +all answer and keep up/);
    expect(report).toMatch(/ok +ClickHouse +replicas of writer +an INSERT waits for all 2/);
  });

  it("take no rows while one of them is away, keep the events, and lose none of them", async () => {
    await server(1).kill();
    await publish("while-away");
    await untilRefused();
    expect(await hasAt(system.apiUrl, "while-away")).toBe(false);
    expect(await doctor()).toMatch(/(warning|problem) +ClickHouse +replica/);
    await server(1).start();
    for (const apiUrl of apiUrls)
      await until("the record is readable", DEADLINE_MS, () => hasAt(apiUrl, "while-away"));
    await readers.settle();
    for (const apiUrl of apiUrls)
      expect(await compareExports(apiUrl, fold(delivery.delivered), new Map([[CLIENT, key]]))).toEqual([]);
  });

  it("give pages and take rows again after one of them has hung", async () => {
    let slowest = 0;
    await whileStopped(server(1), async () => {
      await publish("while-hanging");
      for (let read = 0; read < 20; read += 1) {
        const from = performance.now();
        expect(await hasAt(system.apiUrl, "while-away")).toBe(true);
        slowest = Math.max(slowest, performance.now() - from);
      }
    });
    console.log(`slowest walk beside a replica that hangs: ${slowest.toFixed(0)} ms`);
    expect(slowest).toBeLessThan(30_000);
    for (const apiUrl of apiUrls)
      await until("the record is readable", DEADLINE_MS, () => hasAt(apiUrl, "while-hanging"));
  });

  it("erase a person on both, though one of them is away meanwhile", async () => {
    await delivery.send([
      handMade({
        kind: "end_user",
        client: CLIENT,
        id: "gone-user",
        time: new Date().toISOString(),
        data: { end_user_id: "gone-user", created_at: CREATED, profile: { email: "gone@example.com" } },
      }),
    ]);
    await publish("gone-conversation", {
      end_user_id: "gone-user",
      handoffs: [{ id: "gone-handoff", date_created: CREATED, reasoning: "asked" }],
    });
    await delivery.send([
      handMade({
        kind: "message",
        client: CLIENT,
        id: "gone-message",
        time: new Date().toISOString(),
        data: { _id: "gone-message", date_created: CREATED, conversation_id: "gone-conversation" },
      }),
    ]);
    for (const apiUrl of apiUrls)
      await until("the record is readable", DEADLINE_MS, () => hasAt(apiUrl, "gone-conversation"));
    // Mutations stop with the merges until that server restarts.
    await sqlAt(1, "SYSTEM STOP MERGES");
    const subject = { email: "gone@example.com" };
    const request = await requestErasure(system.apiUrl, key, subject, fetchPatiently);
    const isCompleted = async (): Promise<boolean> => (await request.status()) === "completed";
    await until("a deletion waits for the second server", DEADLINE_MS, async () => {
      const waiting = "SELECT count() FROM system.mutations WHERE NOT is_done FORMAT TSV";
      return (await sqlAt(1, waiting)).trim() !== "0";
    });
    await server(1).kill();
    expect(await isCompleted()).toBe(false);
    await server(1).start();
    await until("the request is completed", DEADLINE_MS, isCompleted);
    for (const index of [0, 1])
      for (const [table, id] of Object.entries(ID_OF)) {
        const rows = `SELECT count() FROM ${table}_local WHERE startsWith(${id}, 'gone-') FORMAT TSV SETTINGS apply_deleted_mask = 0`;
        expect((await sqlAt(index, rows)).trim(), `${table} of server ${index}`).toBe("0");
      }
  });
});
