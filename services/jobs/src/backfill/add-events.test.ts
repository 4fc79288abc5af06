import type { ExportRecord } from "@conversation-export/domain";
import { type TableInsert, WarehouseError } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createRunUpload } from "../process/run-upload.ts";
import { createAddEvents, type EventFilter } from "./add-events.ts";
import { createNoteClients } from "./note-clients.ts";
import type { SourceBatch, SourceEvent } from "../sources/event-source.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const ALL: EventFilter = { clientId: null, window: null, dryRun: false };
const signal = new AbortController().signal;

const eventOf = (data: object, more: object = {}, offset = 1): SourceEvent => ({
  type: "message.exported",
  message: {
    topic: "messages",
    partition: 2,
    offset,
    key: null,
    timestamp: NOW - 1000,
    headers: {},
    value: Buffer.from(
      JSON.stringify({
        specversion: "1.0",
        id: "e",
        source: "/s",
        type: "message.exported",
        time: "2026-03-01T10:00:00Z",
        clientid: "acme",
        data,
        ...more,
      }),
    ),
  },
});
const messageOf = (id: string, more: object = {}, data: object = {}, offset = 1): SourceEvent =>
  eventOf({ _id: id, conversation_id: "c", date_created: "2026-03-01T09:00:00Z", ...data }, more, offset);
const batchOf = (...events: SourceEvent[]): SourceBatch => ({ events, problems: [] });

type Fixture = {
  inserts: TableInsert[];
  suppressed: Set<string>;
  noted: string[];
  previewed: string[];
  unchanged: Set<string>;
  refused: Set<string>;
  failures: number;
  stale: Set<number>;
  onTicket: () => void;
  order: string[];
  notedClients: [string, readonly object[]][];
};

const setUp = () => {
  const fixture: Fixture = {
    inserts: [],
    suppressed: new Set(),
    noted: [],
    previewed: [],
    unchanged: new Set(),
    refused: new Set(),
    failures: 0,
    stale: new Set(),
    onTicket: () => {},
    order: [],
    notedClients: [],
  };
  let stamp = 0;
  const lackingOf = (record: ExportRecord): { table: "messages" }[] =>
    fixture.unchanged.has(record.id) ? [] : [{ table: "messages" }];
  const events = createAddEvents({
    writer: {
      insert: (insert, ticket) => {
        fixture.order.push(`insert ${insert.table}`);
        const stamp = Buffer.from(BigInt64Array.of(BigInt(ticket.stamp)).buffer);
        if (insert.table === "messages") expect(insert.body.includes(stamp)).toBe(true);
        if (fixture.stale.has(ticket.stamp))
          return Promise.reject(
            new WarehouseError("warehouse_unavailable", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", true, null),
          );
        if (fixture.failures > 0) {
          fixture.failures -= 1;
          return Promise.reject(new WarehouseError("warehouse_unavailable", "ECONNREFUSED", true, null));
        }
        const text = insert.body.toString("latin1");
        if (insert.table === "messages" && [...fixture.refused].some((id) => text.includes(id))) {
          return Promise.reject(new WarehouseError("warehouse_refused_data", "INCORRECT_DATA", false, null));
        }
        fixture.inserts.push({ ...insert, body: Buffer.from(insert.body) });
        return Promise.resolve();
      },
    },
    runUpload: createRunUpload({
      inFlight: { during: (_stamp, _isSlow, write) => write() },
      gate: {
        ticket: () => {
          stamp += 1;
          fixture.order.push(`ticket ${stamp}`);
          fixture.onTicket();
          return Promise.resolve({ stamp, generation: 1 });
        },
      },
    }),
    gate: {
      suppresses: async (records) => {
        fixture.order.push("judge");
        return records.map(({ id }) => {
          if (!fixture.suppressed.has(id)) return false;
          fixture.noted.push(id);
          return true;
        });
      },
      wouldSuppress: async (records) => records.map(({ id }) => fixture.suppressed.has(id)),
    },
    preview: (records) => {
      fixture.previewed.push(...records.map(({ id }) => id));
      return Promise.resolve(records.map(lackingOf));
    },
    noteClients: createNoteClients({
      store: {
        registered: () => Promise.resolve(new Set(["acme"])),
        add: async (day, clients) => {
          fixture.notedClients.push([day, clients]);
        },
      },
      now: () => NOW,
    }),
    landingDays: 14,
    maxTimeAheadMs: 300_000,
    now: () => NOW,
  });
  return { fixture, add: (batch: SourceBatch, filter = ALL) => events.add(batch, filter, signal) };
};
const rowsOf = ({ inserts }: Fixture, table: string): number =>
  inserts.filter((insert) => insert.table === table).reduce((sum, { rows }) => sum + rows, 0);

it("takes a ticket, judges behind it, writes with its stamp, landing first", async () => {
  const { fixture, add } = setUp();
  const counts = await add(batchOf(messageOf("m1"), messageOf("m2")));
  const inserts = ["landing", "record_dates", "changes", "messages"].map((table) => `insert ${table}`);
  expect(fixture.order).toEqual(["ticket 1", "judge", ...inserts]);
  expect([rowsOf(fixture, "landing"), rowsOf(fixture, "messages")]).toEqual([2, 2]);
  expect(counts.events).toEqual({ read: 2, suppressed: 0, rejected: 0, ignored: 0 });
  expect(counts.records).toEqual({ examined: 2, different: 2 });
  expect(counts.rows.inserted.messages).toBe(2);
});

it("takes another ticket for a stale one and judges anew: what was erased meanwhile is not written, and counted once", async () => {
  const { fixture, add } = setUp();
  fixture.stale.add(1);
  fixture.onTicket = () => {
    if (fixture.order.includes("ticket 2")) fixture.suppressed.add("m1");
  };
  const counts = await add(batchOf(messageOf("m1"), messageOf("m2")));
  expect(fixture.order.slice(0, 6)).toEqual([
    "ticket 1",
    "judge",
    "insert landing",
    "ticket 2",
    "judge",
    "insert landing",
  ]);
  expect([rowsOf(fixture, "landing"), rowsOf(fixture, "messages")]).toEqual([1, 1]);
  expect(fixture.inserts.some(({ body }) => body.includes("m1"))).toBe(false);
  expect(counts.events).toEqual({ read: 2, suppressed: 1, rejected: 0, ignored: 0 });
  expect(counts.rows.inserted.messages).toBe(1);
});

it("counts what it cannot take and names the places", async () => {
  const { fixture, add } = setUp();
  const nothing = { type: "message.exported", message: { ...messageOf("x").message, value: null } } as const;
  const bytes = { ...nothing, message: { ...nothing.message, value: Buffer.from([0xff]) } };
  const late = messageOf("late", { time: "2026-03-01T12:10:00Z" }, {}, 9);
  const counts = await add({
    events: [nothing, bytes, late, messageOf("ok")],
    problems: [{ place: "a.ndjson:3", reason: "line_too_long", detail: "long" }],
  });
  expect(counts.events).toEqual({ read: 5, suppressed: 0, rejected: 3, ignored: 1 });
  expect(counts.problems.map(({ place, reason }) => [place, reason])).toEqual([
    ["a.ndjson:3", "line_too_long"],
    ["messages/2/1", "invalid_envelope"],
    ["messages/2/9", "time_in_future"],
  ]);
  expect(rowsOf(fixture, "messages")).toBe(1);
});

it("calls a line of a file by the file and its number", async () => {
  const { add } = setUp();
  const { message } = messageOf("x", { specversion: "2" });
  const topic = "file:/in/a#1.ndjson.gz#12-34";
  const counts = await add(batchOf({ type: "message.exported", message: { ...message, topic, offset: 7 } }));
  expect(counts.problems[0]?.place).toBe("/in/a#1.ndjson.gz:7");
});

it("takes the client and the window that are asked for, and drops what is suppressed", async () => {
  const { fixture, add } = setUp();
  fixture.suppressed.add("gone");
  const window = { by: "event", from: "2026-03-01T10:00:00Z", to: "2026-03-01T11:00:00Z" } as const;
  const batch = batchOf(
    messageOf("first"),
    messageOf("end", { time: "2026-03-01T11:00:00Z" }),
    messageOf("before", { time: "2026-03-01T09:59:59.999999Z" }),
    messageOf("other", { clientid: "other" }),
    messageOf("gone"),
  );
  const counts = await add(batch, { clientId: "acme", window, dryRun: false });
  expect(counts.events).toEqual({ read: 5, suppressed: 1, rejected: 0, ignored: 0 });
  expect(fixture).toMatchObject({ previewed: ["first"], noted: ["gone"] });
  const dry = await add(batch, { clientId: "acme", window, dryRun: true });
  expect(dry.events).toEqual(counts.events);
  expect(fixture).toMatchObject({ previewed: ["first", "first"], noted: ["gone"] });
  expect(rowsOf(fixture, "messages")).toBe(1);
  expect(rowsOf(fixture, "landing")).toBe(1);
  expect(fixture.inserts[1]?.body.includes("first")).toBe(true);
});

it("counts what it stores for clients that are not registered", async () => {
  const { fixture, add } = setUp();
  fixture.suppressed.add("gone");
  const other = { clientid: "Acme " };
  const batch = batchOf(
    messageOf("m1"),
    messageOf("m2", other),
    messageOf("m3", other),
    messageOf("gone", other),
  );
  await add(batch, { ...ALL, dryRun: true });
  await add(batchOf(messageOf("m1")));
  expect(fixture.notedClients).toEqual([]);
  await add(batch);
  expect(fixture.notedClients).toEqual([["2026-03-01", [{ clientId: "Acme ", records: 2 }]]]);
});

it("writes nothing that changes nothing, and nothing at all in a dry run, which counts the same", async () => {
  const { fixture, add } = setUp();
  fixture.unchanged.add("m1");
  const batch = batchOf(messageOf("m1"), messageOf("m2"));
  const dry = await add(batch, { ...ALL, dryRun: true });
  expect(fixture.inserts).toEqual([]);
  expect(dry.records).toEqual({ examined: 2, different: 1 });
  expect(await add(batch)).toEqual(dry);
  expect([rowsOf(fixture, "landing"), rowsOf(fixture, "messages")]).toEqual([1, 1]);
});

it("reports records that the warehouse refuses, and writes the others", async () => {
  const { fixture, add } = setUp();
  fixture.refused.add("bad");
  const good = Array.from({ length: 5 }, (_, index) => messageOf(`good${index}`, {}, {}, index));
  const counts = await add(batchOf(...good, messageOf("bad", {}, {}, 77)));
  expect(counts.problems).toMatchObject([{ place: "messages/2/77", reason: "refused_by_warehouse" }]);
  expect(counts.records).toEqual({ examined: 5, different: 5 });
  const written = fixture.inserts.filter(({ table }) => table === "messages").map(({ body }) => String(body));
  for (const index of [0, 1, 2, 3, 4])
    expect(written.some((body) => body.includes(`good${index}`))).toBe(true);
});

it("tries again for a while with the same ticket", async () => {
  const { fixture, add } = setUp();
  fixture.failures = 2;
  await add(batchOf(messageOf("m1")));
  expect(fixture.order.filter((step) => step.startsWith("ticket"))).toEqual(["ticket 1"]);
  expect(fixture.order.filter((step) => step === "insert landing")).toHaveLength(3);
  expect(rowsOf(fixture, "messages")).toBe(1);
});

it("starts another INSERT before one has too many partitions", async () => {
  const { fixture, add } = setUp();
  const months = Array.from({ length: 120 }, (_, index) => {
    const year = 2010 + Math.floor(index / 12);
    return messageOf(
      `m${index}`,
      {},
      { date_created: `${year}-${String((index % 12) + 1).padStart(2, "0")}-01T00:00:00Z` },
    );
  });
  await add(batchOf(...months));
  const messages = fixture.inserts.filter(({ table }) => table === "messages");
  expect(messages.length).toBeGreaterThan(1);
  expect(Math.max(...messages.map(({ rows }) => rows))).toBeLessThanOrEqual(100);
  expect(rowsOf(fixture, "messages")).toBe(120);
});
