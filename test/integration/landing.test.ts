import {
  createBatch,
  createLandingStore,
  createWriter,
  headersOfLanding,
  type LandingStore,
  type Writer,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { readMetric } from "../system/metrics-text.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { createSample } from "../sample/index.ts";
import { conversation, DAY, SECOND } from "../warehouse/records.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import { ticketNow } from "../warehouse/upload-now.ts";

const RECORD_TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"];

let system: System;
let delivery: Delivery;
let store: LandingStore;
let writer: Writer;
const sessions = createSessions();

beforeAll(async () => {
  system = await startSystem("test-landing");
  const { url } = system.stack.clickhouse;
  const { coverage } = createLandingStore({ session: sessions.open(url("jobs")) });
  store = { coverage, markGap: createLandingStore({ session: sessions.open(url("writer")) }).markGap };
  writer = createWriter({ session: sessions.open(url("writer")) });
  delivery = createDelivery(system);
});
afterAll(async () => {
  await sessions.close();
  await system?.stop();
});

const rows = async <Row>(statement: string): Promise<Row[]> => {
  const text = await system.sql(`${statement} FORMAT JSONEachRow`);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);
};
const number = async (statement: string): Promise<number> => Number(await system.sql(statement));
const micros = (expression: string): string => `toString(toUnixTimestamp64Micro(${expression}))`;

const landed = async (): Promise<Map<string, unknown>> => {
  const kept = await rows<Record<string, unknown> & { place: string; headers: [string, string][] }>(
    `SELECT concat(topic, '/', toString(partition), '/', toString(offset)) AS place, hex(key) AS key,
       arrayMap(header -> [header.1, hex(header.2)], headers) AS headers, hex(payload) AS payload
     FROM landing FINAL`,
  );
  return new Map(
    kept.map(({ place, headers, key, payload }) => [
      place,
      { headers: headersOfLanding(headers), key, payload },
    ]),
  );
};

const hexOf = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(hexOf) : Buffer.from(String(value)).toString("hex").toUpperCase();

const sent = (): Map<string, unknown> =>
  new Map(
    delivery.delivered
      .filter(({ event }) => event.value !== null && !("poison" in event && event.poison === true))
      .map(({ event, topic, partition, offset }) => [
        `${topic}/${partition}/${offset}`,
        {
          headers: Object.fromEntries(
            Object.entries(event.headers).map(([name, value]) => [name, hexOf(value)]),
          ),
          key: hexOf("key" in event ? event.key : ""),
          payload: Buffer.from(event.value ?? "")
            .toString("hex")
            .toUpperCase(),
        },
      ]),
  );

const instantsIn = (table: string): Promise<{ at: string }[]> =>
  rows(`SELECT DISTINCT ${micros("uploaded_at")} AS at FROM ${table} ORDER BY at`);

describe("what ingest keeps", () => {
  it("is every accepted event as it came, written with the instant of its rows", async () => {
    expect(await store.coverage()).toBe(null);
    const seed = seedOfRun("landing");
    await system.sql("SYSTEM STOP MERGES landing");
    const ingest = await system.service("ingest", { KAFKA_GROUP_ID: "first", LANDING_DAYS: "9" });
    const before = Date.now();
    await delivery.send(
      createSample({ seed, conversations: bySize(100, 5_000), messagesPerConversation: 3, endUsers: 30 }),
    );
    const data = { _id: "h", date_created: "2026-10-04T00:00:00Z", chatter_id: "Ch", end_user_id: "U" };
    const place = { client: "acme", id: "h", time: "2026-10-05T00:00:00Z", data };
    await delivery.send([
      handMade({
        kind: "conversation",
        ...place,
        headers: { trace: "täxt", "dl-partition": "1", "dl-offset": "7" },
      }),
    ]);
    await system.caughtUp(60_000, "first");
    expect(sent().size).toBeGreaterThan(400);
    expect(await landed()).toEqual(sent());

    const landings = new Set((await instantsIn("landing")).map(({ at }) => at));
    for (const table of RECORD_TABLES) {
      for (const { at } of await instantsIn(table)) expect(landings.has(at), table).toBe(true);
    }
    const [one] = await rows<Record<string, unknown>>(
      `SELECT type, client_id, record_id, conversation_id, subjects, toString(date_created) AS created,
         ${micros("bus_time")} AS busTime, dateDiff('day', toDate(uploaded_at), expires_on) AS days
       FROM landing WHERE record_id = 'h'`,
    );
    expect(one).toMatchObject({
      type: "conversation.exported",
      client_id: "acme",
      conversation_id: "h",
      subjects: ["chatter_id:Ch", "end_user_id:U"],
      created: "2026-10-04 00:00:00.000000",
      days: 10,
    });
    expect(Number(one?.["busTime"]) / 1000).toBeGreaterThanOrEqual(before);
    expect(
      await readMetric(ingest.metricsUrl, "conversation_export_ingest_rows_written_total", {
        table: "landing",
      }),
    ).toBe(sent().size);
    await ingest.kill("SIGTERM");
  });

  it("is the same after everything was read again by a process that was killed and one that was not", async () => {
    const env = { KAFKA_GROUP_ID: "again", BATCH_MAX_RECORDS: "50" };
    const killed = await system.service("ingest", env);
    await until("a batch is written", 30_000, async () => {
      return (
        ((await readMetric(killed.metricsUrl, "conversation_export_ingest_rows_written_total")) ?? 0) > 0
      );
    });
    await killed.kill("SIGKILL");
    // A new group does not wait for the killed process's session to end.
    const ingest = await system.service("ingest", { ...env, KAFKA_GROUP_ID: "anew" });
    await system.caughtUp(60_000, "anew");
    await ingest.kill("SIGTERM");
    expect(await number("SELECT count() FROM landing")).toBeGreaterThan(sent().size);
    expect(await landed()).toEqual(sent());
  });

  it("covers what was uploaded since its oldest event", async () => {
    const oldest = await number(`SELECT ${micros("min(uploaded_at)")} FROM landing`);
    const coverage = await store.coverage();
    expect(coverage?.since).toBe(oldest);
    expect(Math.abs((coverage?.asOf ?? 0) - Date.now() * 1000)).toBeLessThan(5_000_000);
  });

  it("gets an instant, the same in all tables, of after ClickHouse was away", async () => {
    const ingest = await system.service("ingest", { KAFKA_GROUP_ID: "first" });
    await system.stack.clickhouse.kill();
    const data = { _id: "late", date_created: "2026-10-04T00:00:00Z" };
    const place = { client: "acme", id: "late", time: "2026-10-05T00:00:00Z", data };
    await delivery.send([handMade({ kind: "conversation", ...place })]);
    await until("the batch waits", 30_000, async () => {
      return (
        ((await readMetric(ingest.metricsUrl, "conversation_export_ingest_flush_retries_total", {
          step: "stamp",
        })) ?? 0) > 0
      );
    });
    const away = Date.now();
    await system.stack.clickhouse.start();
    await system.caughtUp(60_000, "first");
    await ingest.kill("SIGTERM");
    const [instant, ...others] = await rows<{ at: string }>(
      ["landing", "conversation_updates", "conversations"]
        .map((table) => {
          const id = table === "landing" ? "record_id" : "conversation_id";
          return `SELECT ${micros("uploaded_at")} AS at FROM ${table} WHERE ${id} = 'late'`;
        })
        .join(" UNION DISTINCT "),
    );
    expect(others).toEqual([]);
    expect(Number(instant?.at) / 1000).toBeGreaterThan(away);
    const stamp = `formatDateTime(uploaded_at, '%Y-%m-%dT%H:%i:%S.%f+00:00')`;
    const texts = await rows<{ same: number }>(
      `SELECT position(head, concat('"record_last_updated":"', ${stamp})) > 0 AS same FROM conversations
        WHERE conversation_id = 'late'`,
    );
    expect(texts).toEqual([{ same: 1 }]);
  });
});

describe("coverage", () => {
  it("begins behind everything that was uploaded with landing off", async () => {
    const kept = await number("SELECT count() FROM landing");
    await delivery.send(
      createSample({ seed: "off", conversations: 20, messagesPerConversation: 1, endUsers: 5 }),
    );
    const ingest = await system.service("ingest", { KAFKA_GROUP_ID: "first", LANDING: "off" });
    await system.caughtUp(60_000, "first");
    await ingest.kill("SIGTERM");
    expect(await number("SELECT count() FROM landing")).toBe(kept);
    const latest = await number(`SELECT ${micros("max(uploaded_at)")} FROM conversations`);
    const since = (await store.coverage())?.since ?? 0;
    expect(since).toBeGreaterThan(latest);
    // A process's first stamps lie some seconds ahead.
    expect(since).toBeLessThanOrEqual((Date.now() + 130_000) * 1000);
  });

  type Written = { readonly at: number; readonly id: string; readonly offset: number };

  /** Without `landingDays` as a job does, which stores no event. */
  const writeAt = async ({ at, id, offset }: Written, landingDays: number | undefined): Promise<void> => {
    const batch = createBatch("conversation.exported", 1024, { landingDays });
    const created = Math.floor(at / DAY) * DAY + DAY / 4;
    batch.add(conversation({ client: "acme", time: created, offset }, id, created, created), {
      topic: "conversations",
      partition: 0,
      offset,
      key: null,
      headers: {},
      value: Buffer.from("{}"),
      timestamp: 0,
    });
    batch.fillUpload(at);
    for (const insert of batch.inserts(0, 1)) await writer.insert(insert, ticketNow());
  };
  const noonOf = (day: number): number => (Math.floor((Date.now() * 1000) / DAY) + day) * DAY + DAY / 2;
  const dropDay = async (at: number): Promise<void> => {
    const partition = new Date(at / 1000).toISOString().slice(0, 10).replaceAll("-", "");
    await system.sql(`ALTER TABLE landing DROP PARTITION ${partition}`);
  };
  const since = async (): Promise<number | undefined> => (await store.coverage())?.since;
  const behind = (at: number): number => at + 120_000_000;
  const clear = async (): Promise<void> => {
    for (const table of [...RECORD_TABLES, "landing", "landing_gaps"])
      await system.sql(`TRUNCATE TABLE ${table} SYNC`);
  };

  it("begins behind the last row whose event is gone, and counts no day that is about to go", async () => {
    await clear();
    const writeOnDay = async (day: number, landingDays: number): Promise<number> => {
      const at = noonOf(day);
      await writeAt({ at, id: `day${day}`, offset: -day }, landingDays);
      return at;
    };
    const oldest = await writeOnDay(-6, 30);
    expect(await since()).toBe(oldest);
    const third = await writeOnDay(-3, 30);
    await writeOnDay(-2, 30);
    expect(await since()).toBe(oldest);
    const fifth = await writeOnDay(-5, 6);
    expect(await since()).toBe(oldest);
    await writeOnDay(-5, 5);
    expect(await since()).toBe(behind(fifth));
    await dropDay(third);
    expect(await since()).toBe(behind(third));
    await store.markGap(third + 10 * DAY);
    expect(await since()).toBe(third + 10 * DAY + 1);
    await writeOnDay(-9, 3);
    await until("the expired day is dropped", 30_000, async () => {
      await system.sql("OPTIMIZE TABLE landing FINAL");
      return (await number("SELECT count() FROM landing WHERE expires_on < today()")) === 0;
    });
  });

  it("begins behind what lost its event when a day was dropped that goes on", async () => {
    await clear();
    const noon = noonOf(0);
    const early: Written = { at: noonOf(-2), id: "early", offset: 1 };
    await writeAt(early, 30);
    for (const [index, minute] of [-90, -60, -30].entries())
      await writeAt({ at: noon + minute * 60 * SECOND, id: `morning${index}`, offset: 2 + index }, 30);
    expect(await since()).toBe(early.at);
    await dropDay(noon);
    await writeAt({ at: noon, id: "afternoon", offset: 5 }, 30);
    expect(await since()).toBe(behind(noon - 30 * 60 * SECOND));
    // Stored again later, they are covered though their rows carry the earlier stamp.
    for (const index of [0, 1, 2])
      await writeAt({ at: noon + SECOND, id: `morning${index}`, offset: 2 + index }, 30);
    expect(await since()).toBe(early.at);
  });

  it("is not cut short by what jobs write, as long as its event is kept", async () => {
    await clear();
    const first: Written = { at: noonOf(-3), id: "first", offset: 1 };
    await writeAt(first, 30);
    await writeAt({ ...first, at: noonOf(-1) }, undefined);
    expect(await since()).toBe(first.at);
    // An event of the same record from another place does not explain it.
    await writeAt({ ...first, at: noonOf(-1), offset: 2 }, undefined);
    expect(await since()).toBe(behind(noonOf(-1)));
  });
});
