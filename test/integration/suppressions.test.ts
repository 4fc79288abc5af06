import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ExportRecord, Suppression } from "@conversation-export/domain";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import { createSuppressionGate, type SuppressionGate } from "@conversation-export/suppression";
import {
  createCoordination,
  createSuppressionStore,
  migrate,
  type SuppressionStore,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bySize } from "../system/size.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { conversation, DAY, DAY_0, message } from "../warehouse/records.ts";

const MANY = bySize(1_000_000, 20_000_000);
const READING_BYTES = 80e6;
const BEFORE = DAY_0 + DAY;

let stack: TestStack;
let store: SuppressionStore;
const sessions = createSessions();

beforeAll(async () => {
  stack = await startTestStack({ servers: ["clickhouse"] });
  await migrate({ url: stack.clickhouse.url("migrator"), topology: { cluster: null } });
  store = createSuppressionStore({ session: sessions.open(stack.clickhouse.url("writer")) });
});

afterAll(async () => {
  await sessions.close();
  await stack?.stop();
});

const sql = (statement: string) => runSql(stack.clickhouse.url("migrator"), statement);

const suppression = (
  clientId: string,
  kind: Suppression["kind"],
  value: string,
): Suppression & { readonly requestId: string } => ({
  clientId,
  kind,
  value,
  createdBefore: BEFORE + 1,
  requestId: "request",
});

/** A writer that learns of added suppressions whenever `world.generation` grows. */
const startWriter = async (
  maxHeld: number,
  more: Partial<Pick<SuppressionStore, "hashes" | "secondsByHash" | "serverTime">> = {},
) => {
  const world = { generation: 1 };
  const gate = createSuppressionGate({
    stamps: { take: async () => ({ stamp: Date.now() * 1000, ...world }), look: async () => world },
    store: { ...store, ...more },
    secret: "a secret of the tests",
    maxHeld,
    onLost: (error) => {
      throw error;
    },
    metrics: createMetrics({ service: "test" }),
    log: createLogger({ service: "test", level: "silent" }),
  });
  await gate.start();
  const readAgain = async (): Promise<void> => {
    world.generation += 1;
    await gate.ticket();
  };
  return { gate, readAgain };
};

const of = (client: string, id: string, more: Record<string, unknown> = {}): ExportRecord =>
  conversation({ client, time: DAY_0 }, id, DAY_0, DAY_0, more);
const answers = async (gate: SuppressionGate, records: readonly ExportRecord[]) => ({
  suspected: records.map(gate.suspects),
  erased: await gate.suppresses(records),
});

it("makes the hashes of ClickHouse and of a writer alike, for every kind and any text", async () => {
  const odd = "ö \u0001 \" ' \\ 🙂";
  await store.add([
    suppression("alike", "conversation", odd),
    suppression("alike", "message", odd),
    suppression("alike", "end_user", odd),
  ]);
  const hashes: string[] = [];
  const take = (high: number, low: number, seconds: number): boolean => {
    const [one, other] = [high, low].map((word) => word.toString(16).padStart(8, "0"));
    hashes.push(`${one}${other} ${seconds}`);
    return true;
  };
  expect(await store.hashes(take, { since: null, clients: ["alike"] })).toBe(true);
  const seconds = Math.ceil((BEFORE + 1) / 1e6);
  const hashOf = (kind: string): string =>
    createHash("sha256").update(`${kind}\0alike\0${odd}`).digest("hex").slice(0, 16);
  expect(hashes.sort()).toEqual(
    ["conversation", "message", "end_user"].map((kind) => `${hashOf(kind)} ${seconds}`).sort(),
  );
  const named = ["message", "end_user", "subject"] as const;
  expect(await store.secondsByHash(named.map((kind) => suppression("alike", kind, odd)))).toEqual([
    seconds,
    seconds,
    0,
  ]);
  const { gate } = await startWriter(100);
  const records = [of("alike", odd), of("alike", "good"), of("alike", "named", { end_user_id: odd })];
  expect(await answers(gate, records)).toEqual({
    suspected: [true, false, true],
    erased: [true, false, true],
  });
  expect(await store.lookUp([suppression("alike", "conversation", "named")])).toEqual([BEFORE + 1]);
  await gate.stop();
});

it("shows a writer what was added while ClickHouse's clock was set back and put right before it read again", async () => {
  const hour = 3_600_000;
  const beforeSetBack = (await store.serverTime()) + hour;
  const coordination = createCoordination({ session: sessions.open(stack.clickhouse.url("jobs")) });
  try {
    await coordination.announce(beforeSetBack * 1000);
    const { gate, readAgain } = await startWriter(100, { serverTime: async () => beforeSetBack });
    expect(gate.suspects(of("set-back", "gone"))).toBe(false);
    await store.add([suppression("set-back", "conversation", "gone")]);
    await readAgain();
    expect(gate.suspects(of("set-back", "gone"))).toBe(true);
    await gate.stop();
  } finally {
    await sql("TRUNCATE TABLE coordination");
  }
});

it("reads and looks up ids and clients as long as they may be, whatever is in them", async () => {
  const longest = (at: number, text: string): string => `${at}${text.repeat(1_000)}`.slice(0, 1_000);
  const texts = [":", "\\", "'", "\\n", "€", "\t"];
  const ids = Array.from({ length: 300 }, (_, at) => longest(at, texts[at % texts.length] ?? ""));
  const clients = Array.from({ length: 3_000 }, (_, at) => `client-${at}:${"x".repeat(40)}`);
  await store.add([
    ...ids.flatMap((id) => [suppression("long", "message", id), suppression("long", "end_user", id)]),
    ...clients.map((client) => suppression(client, "message", "m")),
  ]);
  const { gate, readAgain } = await startWriter(10_000);
  await readAgain();
  const of = (client: string, id: string) => message({ client, time: DAY_0 }, id, DAY_0, "parent");
  const records = [
    ...ids.map((id) => of("long", id)),
    ...clients.slice(-20).map((client) => of(client, "m")),
  ];
  const good = [...ids.map((id) => of("long", `${id.slice(0, -1)}-`)), of("client-0", "m")];
  expect(good.map(gate.suspects)).toEqual(good.map(() => false));
  expect(await answers(gate, records)).toEqual({
    suspected: records.map(() => true),
    erased: records.map(() => true),
  });
  await gate.stop();
  const { gate: full } = await startWriter(0);
  expect(await full.suppresses([...records, ...good])).toEqual([
    ...records.map(() => true),
    ...good.map(() => false),
  ]);
  expect(await store.lookUp(ids.map((id) => suppression("long", "end_user", id)))).toEqual(
    ids.map(() => BEFORE + 1),
  );
  await full.stop();
});

it("refuses what is erased when there is no room for the suppressions of its client, and lets others pass", async () => {
  const ids = Array.from({ length: 300 }, (_, at) => `c${at}`);
  await store.add([suppression("small", "conversation", "gone")]);
  const { gate, readAgain } = await startWriter(150);
  await store.add(ids.map((id) => suppression("big", "conversation", id)));
  await readAgain();
  const records = [
    ...ids.map((id) => of("big", id)),
    of("big", "good"),
    of("small", "good"),
    of("small", "gone"),
  ];
  const { suspected, erased } = await answers(gate, records);
  expect(new Set(erased.slice(0, 300))).toEqual(new Set([true]));
  expect(erased.slice(300)).toEqual([false, false, true]);
  expect(suspected.slice(300)).toEqual([true, false, true]);
  // Newer than any erasure, so nothing is looked up.
  expect(gate.suspects(conversation({ client: "big", time: DAY_0 }, "c0", BEFORE + DAY, BEFORE + DAY))).toBe(
    false,
  );
  // Later records are looked up as well, and what is found is known at once.
  await store.add([suppression("big", "conversation", "later")]);
  await readAgain();
  const child = message({ client: "big", time: DAY_0 }, "child", DAY_0, "later");
  expect(await gate.suppresses([child])).toEqual([true]);
  expect(await gate.suppresses([{ ...child, conversationId: "elsewhere" }])).toEqual([true]);
  await gate.stop();
  const { gate: restarted } = await startWriter(150);
  expect((await answers(restarted, records)).erased).toEqual(erased);
  await restarted.stop();
});

it("drops no record whose hash is that of something erased", async () => {
  await store.add([suppression("collides", "conversation", "gone")]);
  const [high, low] = [1, 0].map((at) =>
    createHash("sha256")
      .update("conversation\0collides\0good")
      .digest()
      .readUInt32BE((1 - at) * 4),
  ) as [number, number];
  const { gate } = await startWriter(100, {
    hashes: async (take, options) =>
      (await store.hashes(take, options)) && take(high, low, Math.ceil(BEFORE / 1e6) + 1),
    secondsByHash: async (keys) => keys.map(() => Math.ceil(BEFORE / 1e6) + 1),
  });
  expect(await answers(gate, [of("collides", "good"), of("collides", "gone")])).toEqual({
    suspected: [true, true],
    erased: [false, true],
  });
  await gate.stop();
  // Without a row that has the hash, ClickHouse shows too little: the gate throws.
  const { gate: behind } = await startWriter(100, {
    hashes: async (take, options) =>
      (await store.hashes(take, options)) && take(high, low, Math.ceil(BEFORE / 1e6) + 1),
  });
  await expect(behind.suppresses([of("collides", "good")])).rejects.toMatchObject({
    code: "suppressions_behind",
  });
  await behind.stop();
});

it("notices an answer that breaks off midway", async () => {
  await sql(`INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
    SELECT 'broken', 'message', toString(number), ${BEFORE}, fromUnixTimestamp64Micro(${BEFORE}), 'r'
    FROM numbers(400000)`);
  const limited = createSuppressionStore({
    session: sessions
      .open(stack.clickhouse.url("writer"))
      .with({ settings: { max_rows_to_read: "300000", max_block_size: "10000", max_threads: 1 } }),
  });
  let taken = 0;
  const reading = limited.hashes(() => (taken += 1) > 0, { since: null, clients: ["broken"] });
  await expect(reading).rejects.toMatchObject({ code: expect.stringMatching(/^warehouse_/) });
});

it(`holds ${MANY} suppressions in bounded memory, read without a text for each`, {
  timeout: 600_000,
}, async () => {
  await sql("TRUNCATE TABLE suppressions");
  await sql(`INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
      SELECT 'large', 'message', toString(number), ${BEFORE}, fromUnixTimestamp64Micro(${BEFORE}), 'r'
      FROM numbers(${MANY})`);
  const hold = join(import.meta.dirname, "../warehouse/hold-suppressions.ts");
  const run = async (max: number) => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      hold,
      stack.clickhouse.url("writer"),
      String(max),
    ]);
    return JSON.parse(stdout);
  };
  const held = await run(MANY);
  console.log(JSON.stringify(held));
  expect(held).toMatchObject({
    suspects: [true, true, true, false],
    suppressed: [true, true, true, false],
    gauges: {
      conversation_export_suppressions: MANY,
      conversation_export_suppressions_max: MANY,
      conversation_export_suppression_clients_looked_up: 0,
    },
  });
  expect(held.gauges.conversation_export_suppression_bytes).toBeLessThan(MANY * 16);
  expect(held.grown).toBeLessThan(Math.min(400e6, READING_BYTES + MANY * 16));
  expect(held.seconds).toBeLessThan(bySize(60, 300));
  const looked = await run(MANY - 1);
  expect(looked).toMatchObject({
    suspects: [true, true, true, true],
    suppressed: [true, true, true, false],
    gauges: { conversation_export_suppressions: 0, conversation_export_suppression_clients_looked_up: 1 },
  });
});
