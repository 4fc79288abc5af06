import { type EventType, type ExportRecord, parseTimestamp, processEvent } from "@conversation-export/domain";
import { type Batch, createBatch, type PageQuery } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Delivered,
  fold,
  type Folded,
  normaliseExported,
  windowCreated,
  windowUpdated,
} from "../reference/index.ts";
import { createSample, type RecordKind } from "../sample/index.ts";
import { createRandom, seed, shuffled } from "../warehouse/random.ts";
import { DAY } from "../warehouse/records.ts";
import { expectedRow, readView, type Row } from "../warehouse/view-rows.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { ticketNow } from "../warehouse/upload-now.ts";

const full = process.env["TEST_SIZE"] === "full";
const CLIENTS = ["acme", "globex"];
const FIVE_MINUTES = 300_000_000;

const TYPES: Readonly<Record<RecordKind, EventType>> = {
  conversation: "conversation.exported",
  message: "message.exported",
  end_user: "end_user.exported",
};
const TOPICS: Readonly<Record<RecordKind, string>> = {
  conversation: "conversations",
  message: "messages",
  end_user: "end-users",
};

type Taken = { readonly delivered: Delivered; readonly type: EventType };

function deliver(random: ReturnType<typeof createRandom>): Taken[] {
  const sample = createSample({
    seed: `${seed}`,
    conversations: full ? 4_000 : 400,
    messagesPerConversation: 4,
    clients: CLIENTS,
    endUsers: 60,
    poisonShare: 0.05,
    nullShare: 0.01,
    nonstandardShare: 0.3,
    lateShare: 0.2,
    duplicateShare: 0.1,
  });
  const busTime = parseTimestamp("2026-10-20T00:00:00Z") ?? 0;
  const offsets = new Map<string, number>();
  return [...sample].map((event) => {
    const topic = TOPICS[event.kind];
    // One record stays on one partition.
    const partition = Buffer.from(event.key).reduce((sum, byte) => sum + byte, 0) % 3;
    const place = `${topic} ${partition}`;
    const offset = offsets.get(place) ?? random.int(1e6);
    offsets.set(place, offset + 1 + random.int(2));
    const delivered = { event: { value: event.value, headers: event.headers }, topic, partition, offset };
    return { delivered: { ...delivered, busTime: BigInt(busTime) }, type: TYPES[event.kind] };
  });
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** undefined: not UTF-8, which processEvent's caller must find. */
function decode(value: Uint8Array | null): string | null | undefined {
  try {
    return value === null ? null : utf8.decode(value);
  } catch {
    return undefined;
  }
}

let warehouse: Warehouse;
let folded: Folded;
const rejected: { topic: string; partition: number; offset: number; reason: string }[] = [];
let ignored = 0;

beforeAll(async () => {
  warehouse = await startWarehouse();
  const random = createRandom(20);
  const taken = deliver(random);
  folded = fold(taken.map(({ delivered }) => delivered));

  const records: ExportRecord[] = [];
  for (const { delivered, type } of taken) {
    const { topic, partition, offset, event, busTime } = delivered;
    const text = decode(event.value);
    if (text === undefined) {
      rejected.push({ topic, partition, offset, reason: "invalid_envelope" });
      continue;
    }
    const latestTime = Number(busTime) + FIVE_MINUTES;
    const outcome = processEvent(
      { text, headers: event.headers, position: { partition, offset }, latestTime },
      type,
    );
    if (outcome.kind === "accepted") records.push(outcome.record);
    else if (outcome.kind === "ignored") ignored += 1;
    else rejected.push({ topic, partition, offset, reason: outcome.reason });
  }

  const arrivals = shuffled(random, [...records, ...records.filter(() => random.chance(0.1))]);
  const batches = new Map<EventType, Batch>();
  const flush = async (batch: Batch): Promise<void> => {
    batch.fillUpload(random.int(1e9));
    for (let from = 0; from < batch.records(); ) {
      const to = random.chance(0.5) ? batch.records() : Math.min(batch.records(), from + 1 + random.int(500));
      for (const insert of batch.inserts(from, to)) await warehouse.writer.insert(insert, ticketNow());
      from = to;
    }
  };
  for (const record of arrivals) {
    const batch = batches.get(record.type) ?? createBatch(record.type, 1 << 16);
    batches.set(record.type, batch);
    batch.add(record);
    if (random.chance(1 / 150)) {
      await flush(batch);
      batches.delete(record.type);
    }
  }
  for (const batch of batches.values()) await flush(batch);
});
afterAll(() => warehouse?.stop());

const from = 0;
const to = 4_291_747_200_000_000;
const week = {
  since: parseTimestamp("2026-10-05T00:00:00Z") as number,
  to: parseTimestamp("2026-10-08T00:00:00Z") as number,
};

function query(clientId: string, pageSize: number, window: { since: number; to: number }): PageQuery {
  return { clientId, ...window, pageSize, wholeTies: pageSize % 2 === 0 };
}

test("the sample holds enough of everything", () => {
  for (const client of CLIENTS) {
    expect(folded.conversations.get(client)?.size).toBeGreaterThan(100);
    expect(folded.messages.get(client)?.size).toBeGreaterThan(400);
  }
  expect(folded.rejected.length).toBeGreaterThan(20);
  expect(folded.ignored).toBeGreaterThan(2);
});

test("the same events are rejected for the same reasons, and as many ignored", () => {
  const print = (one: { topic: string; partition: number; offset: number; reason: string }) =>
    `${one.topic} ${one.partition} ${one.offset} ${one.reason}`;
  expect(rejected.map(print)).toEqual(folded.rejected.map(print));
  expect(ignored).toBe(folded.ignored);
});

test.each([
  ["conversationsByCreation", "conversations", windowCreated],
  ["conversationsByUpdate", "conversations", windowUpdated],
  ["messagesByCreation", "messages", windowCreated],
] as const)("%s is the reference fold, text for text", async (read, kind, windowOf) => {
  for (const client of CLIENTS) {
    for (const [size, window] of [
      [97, { since: from, to }],
      [50, week],
      [10_000, week],
    ] as const) {
      const expected = windowOf(folded[kind], client, BigInt(window.since), BigInt(window.to));
      expect(expected.length).toBeGreaterThan(10);
      const { records } = await walk(warehouse.reader[read], query(client, size, window));
      const shown = records.map(normaliseExported);
      expect(shown.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
      for (const [index, { json }] of shown.entries()) expect(json).toBe(expected[index]?.json);
    }
  }
});

test("end users are stored as the reference fold says", async () => {
  const rows = await warehouse.sql(
    "SELECT client_id, end_user_id, record FROM end_users FINAL ORDER BY client_id, end_user_id FORMAT JSONCompactEachRow",
  );
  const stored = rows.split("\n").map((line) => JSON.parse(line) as [string, string, string]);
  const expected = [...folded.endUsers].flatMap(([client, users]) =>
    [...users.values()].map(({ id, json }) => JSON.stringify([client, id, json])),
  );
  expect(expected.length).toBeGreaterThan(20);
  const printed = stored.map(([client, id, record]) =>
    JSON.stringify([client, id, normaliseExported(record).json]),
  );
  expect(printed.toSorted()).toEqual(expected.toSorted());
});

const publicRecords = (kind: "conversations" | "messages" | "endUsers") =>
  [...folded[kind]].flatMap(([client, records]) =>
    [...records.values()].map(({ json }) => ({ client, record: JSON.parse(json) as Row })),
  );
const sorted = (rows: readonly Row[], ...keys: readonly string[]): Row[] =>
  rows.toSorted((a, b) => {
    const [x, y] = [a, b].map((row) => keys.map((key) => String(row[key])).join(" "));
    return (x ?? "") < (y ?? "") ? -1 : 1;
  });

test.each([
  ["conversations", "conversations", "conversation_id"],
  ["messages", "messages", "message_id"],
  ["end_users", "endUsers", "end_user_id"],
] as const)("an analyst finds each record once in the view %s, with all its fields", async (view, kind, id) => {
  const rows = await readView(warehouse, view, "* EXCEPT record_last_updated");
  const expected = publicRecords(kind).map(({ client, record }) => expectedRow(view, client, record));
  expect(expected.length).toBeGreaterThan(20);
  expect(sorted(rows, "client_id", id)).toEqual(sorted(expected, "client_id", id));
});

test("an analyst finds each handoff of a conversation once, and days that add up", async () => {
  const conversations = publicRecords("conversations");
  const attempts = conversations.flatMap(({ client, record }) =>
    (record["handoffs"] as Row[]).map((one) => ({
      client_id: client,
      conversation_id: record["_id"],
      ...one,
    })),
  );
  expect(attempts.length).toBeGreaterThan(20);
  const keys = ["client_id", "conversation_id", "id", "handoff_id"];
  const found = await readView(warehouse, "handoffs", "* EXCEPT conversation_date_created");
  expect(sorted(found, ...keys)).toEqual(sorted(attempts, ...keys));

  const counted = conversations.filter(({ record }) => record["is_test_user"] !== true);
  const count = (isOne: (record: Row) => boolean) => counted.filter(({ record }) => isOne(record)).length;
  const days = new Set(
    counted.map(({ client, record }) => `${client} ${String(record["date_created"]).slice(0, 10)}`),
  );
  const [sums] = await readView(
    warehouse,
    "conversation_daily",
    "count() AS days, sum(conversations) AS conversations, sum(engaged) AS engaged, sum(contained) AS contained, sum(escalated) AS escalated, sum(resolved) AS resolved",
  );
  expect(sums).toEqual({
    days: days.size,
    conversations: counted.length,
    engaged: count((one) => one["is_engaged"] === true),
    contained: count((one) => one["is_engaged"] === true && one["is_escalated"] !== true),
    escalated: count((one) => one["is_escalated"] === true),
    resolved: count((one) => one["automated_resolution_classification"] === "Resolved"),
  });
});

test("the sample's days lie inside the windows", () => {
  const dates = [...folded.conversations.values()].flatMap((records) =>
    [...records.values()].map(({ dateCreated }) => dateCreated),
  );
  const inWeek = dates.filter((date) => date >= BigInt(week.since) && date < BigInt(week.to));
  expect(inWeek.length).toBeGreaterThan(50);
  expect(inWeek.length).toBeLessThan(dates.length);
  expect(Number(dates.reduce((a, b) => (a > b ? a : b)))).toBeLessThan(week.to + 30 * DAY);
});
