import type { ExportRecord } from "@conversation-export/domain";
import {
  createBatch,
  createClientStore,
  createUnregisteredClientStore,
  createWatermarkStore,
  type PageQuery,
  type WatermarkStore,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROWS_WITHOUT_DATE } from "../system/record-dates.ts";
import { bySize } from "../system/size.ts";
import { createRandom } from "../warehouse/random.ts";
import { conversation, DAY, DAY_0, message, publicText, SECOND } from "../warehouse/records.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { SHARDS } from "../system/shards.ts";
import { ticketNow } from "../warehouse/upload-now.ts";

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
});
afterAll(() => warehouse?.stop());

const created = DAY_0;
const wide = { since: DAY_0, to: DAY_0 + 100 * DAY };

function query(clientId: string, pageSize: number, window = wide): PageQuery {
  return { clientId, ...window, pageSize, wholeTies: false };
}

function idOf(text: string): string {
  return (JSON.parse(text) as { _id: string })._id;
}

describe("between the inserts of a batch", () => {
  const entry = (id: string, day: number, reasoning: string) => ({
    handoff_id: null,
    id: `${id}-attempt`,
    date_created: `2026-10-0${day}T00:00:00Z`,
    reasoning,
  });
  const at = (client: string, id: string, time: number, updated: number, handoffs: unknown[] = []) =>
    conversation({ client, time: DAY_0 + time }, id, created, created + updated, {
      browser: `export ${time}`,
      handoffs,
    });

  async function windows(client: string) {
    const { reader } = warehouse;
    return {
      created: (await walk(reader.conversationsByCreation, query(client, 2))).records,
      updated: (await walk(reader.conversationsByUpdate, query(client, 2))).records,
    };
  }

  // Invariants: both windows show the same text, all fields but handoffs come from one export, and a new record
  // appears with its last insert. Handoffs may be ahead.
  test("every field but handoffs is old until the last insert, and then new, in both windows", async () => {
    const old = at("b1", "known", 1, 5, [entry("h", 1, "old h")]);
    await warehouse.write([old]);
    const merged = [entry("h", 2, "new h"), entry("k", 3, "new k")];
    const next = at("b1", "known", 2, 3 * DAY, merged);
    const fresh = at("b1", "unknown", 2, DAY, [entry("h", 1, "of a new conversation")]);
    const oldText = publicText(
      old,
      DAY_0,
      old.handoffs.map(({ entry }) => entry),
    );
    expect(await windows("b1")).toEqual({ created: [oldText], updated: [oldText] });

    const mergedText = publicText(
      old,
      DAY_0,
      next.handoffs.map(({ entry }) => entry),
    );
    expect(mergedText).toContain("new k");
    for (const statements of [3, 4]) {
      await warehouse.write([next, fresh], DAY_0, statements);
      expect(await windows("b1"), `${statements} statements`).toEqual({
        created: [mergedText],
        updated: [mergedText],
      });
    }
    await warehouse.write([next, fresh]);
    const nextText = publicText(
      next,
      DAY_0,
      next.handoffs.map(({ entry }) => entry),
    );
    const freshText = publicText(
      fresh,
      DAY_0,
      fresh.handoffs.map(({ entry }) => entry),
    );
    expect(await windows("b1")).toEqual({ created: [nextText, freshText], updated: [freshText, nextText] });
  });

  test("a batch without handoffs changes nothing before its last insert", async () => {
    const old = at("b2", "known", 1, 5);
    await warehouse.write([old]);
    const next = at("b2", "known", 2, 3 * DAY);
    const oldText = publicText(old);
    for (const statements of [1, 2]) {
      await warehouse.write([next, at("b2", "unknown", 2, DAY)], DAY_0, statements);
      expect(await windows("b2")).toEqual({ created: [oldText], updated: [oldText] });
    }
  });

  test("an older export that arrives later changes no field at any moment", async () => {
    const latest = at("b3", "known", 9, 5);
    await warehouse.write([latest]);
    for (const statements of [1, 2, 3]) {
      await warehouse.write([at("b3", "known", 2, 3 * DAY)], DAY_0, statements);
      expect(await windows("b3")).toEqual({ created: [publicText(latest)], updated: [publicText(latest)] });
    }
  });

  test("the statements come in the order that this relies on", () => {
    const batch = createBatch("conversation.exported", 1);
    batch.add(at("b4", "c", 1, 1, [entry("h", 1, "h")]));
    expect(batch.inserts(0, 1).map(({ table }) => table)).toEqual([
      "record_dates",
      "changes",
      "handoffs",
      "conversation_updates",
      "conversations",
    ]);
  });

  test("no row is there without its date, wherever the writer stops", async () => {
    const handoffs = [entry("h", 1, "h")];
    let written = 0;
    for (const [type, statements] of [
      ["conversation", 5],
      ["message", 3],
    ] as const) {
      for (let stop = 1; stop <= statements; stop += 1) {
        for (const id of ["same", `${stop}`]) {
          const attributes = { client: "b5", time: DAY_0 + stop };
          const date = id === "same" ? created : created + stop;
          const record =
            type === "message"
              ? message(attributes, id, date, "c")
              : conversation(attributes, id, date, date, { handoffs });
          await warehouse.write([record], DAY_0, stop);
          written += Math.max(stop - 2, 0);
          expect(await warehouse.sql(ROWS_WITHOUT_DATE), `${type} ${id}, ${stop} statements`).toBe("");
        }
      }
    }
    const tables = ["handoffs", "conversation_updates", "conversations", "messages"];
    const counts = tables.map((table) => `SELECT count() AS n FROM ${table} WHERE client_id = 'b5'`);
    expect(await warehouse.sql(`SELECT sum(n) FROM (${counts.join(" UNION ALL ")})`)).toBe(`${written}`);
  });
});

test("no record is missing from a page, nor a handoff behind it, while batches are written", async () => {
  const AT_LEAST = 20;
  const client = "race";
  const random = createRandom(8);
  const ids = Array.from({ length: 30 }, (_, i) => `c${String(i).padStart(2, "0")}`);
  let version = 0;
  const batchOf = (some: readonly string[]): ExportRecord[] =>
    some.map((id) => {
      version += 1;
      const handoffs = [{ id: "h", date_created: "2026-10-04T00:00:00Z", reasoning: `${version}` }];
      const data = { browser: `${version}`, handoffs };
      return conversation({ client, time: DAY_0 + version }, id, created, created + version, data);
    });
  await warehouse.write(batchOf(ids));
  await warehouse.sql("SYSTEM START MERGES");
  const done = { conversationsByUpdate: 0, conversationsByCreation: 0, writes: 0 };
  const deadline = Date.now() + bySize(0, 120_000);
  const goesOn = (): boolean => Date.now() < deadline || Math.min(...Object.values(done)) < AT_LEAST;
  const write = async (): Promise<void> => {
    for (; goesOn(); done.writes += 1) await warehouse.write(batchOf(ids.filter(() => random.chance(0.3))));
  };
  const lost: string[] = [];
  const read = async (name: "conversationsByUpdate" | "conversationsByCreation"): Promise<void> => {
    for (; goesOn(); done[name] += 1) {
      const { records } = await walk(warehouse.reader[name], query(client, 100));
      const shown = records.map(idOf);
      if (shown.toSorted().join() !== ids.join()) {
        lost.push(
          `${name}: ${ids.filter((id) => !shown.includes(id)).join()} missing, ${shown.length} shown`,
        );
      }
      for (const text of records) {
        const { browser, handoffs } = JSON.parse(text) as {
          browser: string;
          handoffs: { reasoning: string }[];
        };
        if (!(Number(handoffs[0]?.reasoning) >= Number(browser))) lost.push(`${name}: handoff of ${text}`);
      }
    }
  };
  await Promise.all([read("conversationsByUpdate"), read("conversationsByCreation"), write()]);
  await warehouse.sql("SYSTEM STOP MERGES");
  expect(lost).toEqual([]);
});

// What docs/pages-and-windows.md promises for records that change while a reader pages through them.
describe("promises to a reader who walks while records change", () => {
  const COUNT = 30;
  const PAGE = 10;
  const LATER = { time: DAY_0 + 10 * DAY };
  const createdOf = (index: number): number => DAY_0 + index * SECOND;
  const updatedOf = (index: number): number => DAY_0 + DAY + index * SECOND;
  const nameOf = (index: number): string => `c-${String(index).padStart(2, "0")}`;

  const prepare = (client: string): Promise<void> =>
    warehouse.write(
      Array.from({ length: COUNT }, (_, index) =>
        conversation({ client, time: DAY_0 + DAY }, nameOf(index), createdOf(index), updatedOf(index)),
      ),
    );

  const seen = async (
    client: string,
    list: "conversationsByCreation" | "conversationsByUpdate",
    change: () => Promise<void>,
  ): Promise<string[]> => {
    const query = { clientId: client, since: DAY_0, to: DAY_0 + 5 * DAY, pageSize: PAGE, wholeTies: false };
    let changed = false;
    const { records } = await walk(
      (wanted: PageQuery) => warehouse.reader[list](wanted),
      query,
      async () => {
        if (!changed) await change();
        changed = true;
      },
    );
    return records.map((text) => {
      const { _id, browser } = JSON.parse(text) as { _id: string; browser: string | null };
      return `${_id} ${browser ?? "first"}`;
    });
  };

  const export2 = (client: string, index: number, date_updated: number | null): Promise<void> => {
    const record = conversation({ client, ...LATER }, nameOf(index), createdOf(index), date_updated ?? 0, {
      browser: "second",
      ...(date_updated === null && { date_updated: null }),
    });
    return warehouse.write([record]);
  };
  const all = (changes: Readonly<Record<number, string>> = {}): string[] =>
    Array.from({ length: COUNT }, (_, index) => `${nameOf(index)} ${changes[index] ?? "first"}`);

  test("by creation each record comes once, whatever its date_updated does", async () => {
    await prepare("w1");
    const walked = await seen("w1", "conversationsByCreation", async () => {
      await export2("w1", 3, updatedOf(50));
      await export2("w1", 20, DAY_0);
      await export2("w1", 25, null);
    });
    expect(walked).toEqual(all({ 20: "second", 25: "second" }));
  });

  test("by update a record that moves on comes again in its newer version", async () => {
    await prepare("w2");
    const walked = await seen("w2", "conversationsByUpdate", () => export2("w2", 3, updatedOf(50)));
    expect(walked).toEqual([...all(), `${nameOf(3)} second`]);
  });

  test("by update a record that keeps its date comes once, as it is", async () => {
    await prepare("w3");
    const walked = await seen("w3", "conversationsByUpdate", () => export2("w3", 20, updatedOf(20)));
    expect(walked).toEqual(all({ 20: "second" }));
  });

  test.each([
    ["moves back", updatedOf(0) - 1],
    ["is left out, and becomes the date_created", null],
  ])("by update a record whose date_updated %s behind the reader is missed, and no other", async (_, date) => {
    const client = date === null ? "w5" : "w4";
    await prepare(client);
    const walked = await seen(client, "conversationsByUpdate", () => export2(client, 20, date));
    expect(walked).toEqual(all().filter((one) => !one.startsWith(nameOf(20))));
    const again = await seen(client, "conversationsByUpdate", () => Promise.resolve());
    expect(again.toSorted()).toEqual(all({ 20: "second" }).toSorted());
  });
});

describe("what a batch may hold", () => {
  test.skipIf(SHARDS > 1)("20,000 records of three months make one part per partition", async () => {
    const handoffs = [1, 2].map((n) => ({
      id: `${n}`,
      date_created: "2026-10-04T00:00:00Z",
      reasoning: "r",
    }));
    const data = { browser: "x".repeat(2_000), handoffs };
    const records = [0, 31, 62].map((day) => {
      const date = created + day * DAY;
      return conversation({ client: "parts", time: DAY_0 }, "c", date, date, data);
    });
    const batch = createBatch("conversation.exported");
    for (let i = 0; i < 20_000; i += 1) {
      const record = records[i % 3];
      if (record !== undefined) batch.add({ ...record, id: `c${i}` });
    }
    batch.fillUpload(DAY_0);
    const count = () =>
      warehouse.sql(`SELECT table, partition, count(), sum(rows) FROM system.parts
        WHERE active AND database = currentDatabase() AND table IN ('handoffs', 'conversations', 'conversation_updates')
        GROUP BY table, partition ORDER BY table, partition FORMAT JSONCompactEachRow`);
    for (const table of ["handoffs", "conversations", "conversation_updates"])
      await warehouse.sql(`TRUNCATE TABLE ${table}`);
    for (const insert of batch.inserts(0, batch.records()))
      await warehouse.writer.insert(insert, ticketNow());
    const rows = (await count())
      .split("\n")
      .map((line) => JSON.parse(line) as [string, string, string | number, string | number]);
    expect(rows.map(([table, partition, parts]) => `${table} ${partition} ${parts}`)).toEqual(
      ["conversation_updates", "conversations", "handoffs"].flatMap((table) =>
        ["202610", "202611", "202612"].map((month) => `${table} ${month} 1`),
      ),
    );
    expect(rows.reduce((sum, row) => sum + Number(row[3]), 0)).toBe(80_000);
  });

  test("as many months as the batch takes fit into one insert", async () => {
    const batch = createBatch("message.exported", 1);
    const months = (count: number): number => Date.UTC(1990, count, 15) * 1000;
    let count = 0;
    for (; !batch.spansTooManyPartitions(); count += 1) {
      batch.add(message({ client: "months", time: DAY_0 }, `m${count}`, months(count), "c"));
      batch.add(message({ client: "months", time: DAY_0 }, `n${count}`, months(count), "c"));
    }
    expect(count).toBe(90);
    for (const insert of batch.inserts(0, batch.records()))
      await warehouse.writer.insert(insert, ticketNow());
    const window = { since: months(0), to: months(count) };
    const { records } = await walk(warehouse.reader.messagesByCreation, query("months", 100, window));
    expect(records).toHaveLength(180);
  });

  test("months of updates count as well", () => {
    const batch = createBatch("conversation.exported", 1);
    for (let month = 0; month < 90; month += 1) {
      expect(batch.spansTooManyPartitions()).toBe(false);
      batch.add(conversation({ client: "months", time: DAY_0 }, "c", created, Date.UTC(1990, month) * 1000));
    }
    expect(batch.spansTooManyPartitions()).toBe(true);
  });

  test("any split of a batch writes what the whole would", async () => {
    const random = createRandom(9);
    const batch = createBatch("conversation.exported", 1);
    const expected: string[] = [];
    for (let i = 0; i < 30; i += 1) {
      const handoffs = Array.from({ length: random.int(3) }, (_, n) => ({
        id: `${n}`,
        date_created: "2026-10-04T00:00:00Z",
      }));
      const record = conversation(
        { client: "split", time: DAY_0 },
        `c${String(i).padStart(2, "0")}`,
        created,
        created,
        { handoffs },
      );
      batch.add(record);
      expected.push(
        publicText(
          record,
          DAY_0 + 5,
          record.handoffs.map(({ entry }) => entry),
        ),
      );
    }
    batch.fillUpload(DAY_0);
    batch.fillUpload(DAY_0 + 5);
    for (let from = 0; from < 30; ) {
      const to = Math.min(30, from + 1 + random.int(8));
      for (const insert of batch.inserts(from, to)) await warehouse.writer.insert(insert, ticketNow());
      from = to;
    }
    const read = async (name: "conversationsByCreation" | "conversationsByUpdate") =>
      (await walk(warehouse.reader[name], query("split", 100))).records;
    expect(await read("conversationsByCreation")).toEqual(expected);
    expect(await read("conversationsByUpdate")).toEqual(expected);
  });
});

describe("clients that are not registered", () => {
  test("are kept with what came of them, and left out once they are registered", async () => {
    const writer = createUnregisteredClientStore({ session: warehouse.session("writer") });
    const operator = warehouse.session("migrator");
    const reader = createUnregisteredClientStore({ session: operator });
    const store = createClientStore({ session: operator, now: Date.now });
    const register = (clientId: string): Promise<void> =>
      store.saveClient({
        clientId,
        linkBounds: null,
        rateLimits: {},
        retentionDays: null,
        deleted: false,
        createdAt: new Date().toISOString(),
      });
    expect(await reader.list()).toEqual([]);
    await register("demo-client");
    expect(await writer.registered()).toEqual(new Set(["demo-client"]));
    const today = new Date().toISOString().slice(0, 10);
    const [named, blank] = ["Demo-Client", "demo-client\u200b"];
    await writer.add(today, [{ clientId: named, records: 2 }]);
    await writer.add(today, [
      { clientId: named, records: 3 },
      { clientId: blank, records: 1 },
    ]);
    expect(await reader.list()).toEqual([
      { clientId: named, records: 5 },
      { clientId: blank, records: 1 },
    ]);
    await register(named);
    expect(await reader.list()).toEqual([{ clientId: blank, records: 1 }]);
  });
});

describe("watermarks", () => {
  /** ClickHouse runs on this machine too. */
  const nowMicros = (): number => Date.now() * 1000;
  const TOPIC = { topicId: "one", createdAnew: null };
  let store: WatermarkStore;
  beforeAll(() => {
    store = createWatermarkStore({ session: warehouse.session("writer") });
  });

  test("keeps the largest instant of each list", async () => {
    const later = nowMicros();
    expect(await store.save("conversations", later)).toBe(true);
    expect(await store.save("conversations", later - SECOND)).toBe(true);
    expect(await store.save("end_users", later - SECOND)).toBe(true);
    expect(await store.load()).toEqual({ conversations: later, end_users: later - SECOND });
  });

  test("keeps what was saved last of each topic, apart from watermarks", async () => {
    const before = await store.load();
    const anew = { topicId: "two", createdAnew: Date.now() };
    await store.saveTopic("conversations", TOPIC);
    await store.saveTopic("end_users", TOPIC);
    const ahead = { list: "topic of end_users", version: nowMicros() + 360 * SECOND, topic_id: "one" };
    await warehouse.session("writer").insert("test.insert", { table: "watermarks", rows: [ahead] });
    await store.saveTopic("end_users", anew);
    expect(await store.loadTopics()).toEqual({ conversations: TOPIC, end_users: anew });
    expect(await store.load()).toEqual(before);
  });

  test("never stores an instant that ClickHouse's clock has not reached", async () => {
    const before = await store.load();
    expect(await store.save("messages", nowMicros() + 3_600 * SECOND)).toBe(false);
    expect(await store.load()).toEqual(before);
    const soon = nowMicros() + 0.6 * SECOND;
    const saved = store.save("messages", soon);
    while (nowMicros() < soon - 0.1 * SECOND) expect(await store.load()).toEqual(before);
    expect(await saved).toBe(true);
    expect(nowMicros()).toBeGreaterThanOrEqual(soon);
    expect((await store.load()).messages).toBe(soon);
  });
});
