import type { BusMessage } from "@conversation-export/bus";
import type { ExportRecord } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { createBatchFiller } from "./batch-filler.ts";
import { createBufferBudget } from "./buffer-budget.ts";
import { exportedMessage, NOW } from "../exported-message.fixture.ts";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createTopicBatches, type TopicBatch } from "./topic-batch.ts";

const message = (offset: number, data: object = {}, change: Partial<BusMessage> = {}): BusMessage =>
  exportedMessage(offset, data, { partition: 1, key: Buffer.from("key"), ...change });

const startFiller = (
  suppresses: (record: ExportRecord) => boolean = () => false,
  world = { judgement: 1, now: NOW },
) => {
  const { metrics, log, linesOf } = createTestMetrics();
  const noted: unknown[] = [];
  const budget = createBufferBudget({ maxBytes: 1_000_000, onRoom: () => {} });
  const common = { topic: "messages", type: "message.exported", now: () => world.now } as const;
  const gate = { judgement: () => world.judgement };
  const batch = createTopicBatches({ ...common, gate, landingDays: null, traces: null }).open(1);
  const filler = createBatchFiller({
    ...common,
    landingDays: null,
    maxTimeAheadMs: 300_000,
    budget,
    gate: {
      ...gate,
      suspects: suppresses,
      suppresses: async (records) => records.map(suppresses),
    },
    clients: { note: (topic, clientId) => void noted.push([topic, clientId]) },
    metrics,
    log,
  });
  return { filler, batch, budget, noted, linesOf };
};

const rowsOf = ({ rows }: TopicBatch): string[] => {
  const bodies =
    rows.records() === 0 ? [] : rows.inserts(0, rows.records()).map(({ body }) => body.toString("latin1"));
  return [...new Set(bodies.join().match(/m\d+/g))].toSorted();
};

it("puts a record into the rows, its message beside it, and the offset behind it", () => {
  const { filler, batch, noted } = startFiller();
  const taken = message(7);
  filler.add(batch, taken);
  expect(noted).toEqual([["messages", "acme"]]);
  expect(batch.rows.records()).toBe(1);
  expect(batch.sources).toEqual([taken]);
  expect([...batch.offsets]).toEqual([[1, 8]]);
});

it("makes a dead letter of what is no event, and nothing of an event without a value or about an erased person", async () => {
  const { filler, batch, linesOf } = startFiller(({ id }) => id === "m2");
  filler.add(batch, message(0, {}, { value: Buffer.from([0xff]) }));
  filler.add(batch, message(1, {}, { value: null }));
  filler.add(batch, message(2));
  expect(batch.judgedBy).toBeNull();
  await filler.judge(batch);
  expect(batch.deadLetters.map(({ source, rejection }) => [source.offset, rejection.reason])).toEqual([
    [0, "invalid_envelope"],
  ]);
  expect([batch.rows.records(), [...batch.offsets]]).toEqual([0, [[1, 3]]]);
  expect(await linesOf("conversation_export_ingest_records_ignored_total")).toEqual([
    expect.stringMatching(/reason="null_value".* 1$/),
    expect.stringMatching(/reason="suppressed".* 1$/),
  ]);
});

it("counts values behind the id of a schema, and leaves it in a dead letter", async () => {
  const { filler, batch, linesOf } = startFiller();
  const prefixed = (value: Buffer | null): Buffer =>
    Buffer.concat([Uint8Array.of(0, 0, 0, 1, 200), value ?? Buffer.of()]);
  const refused = prefixed(Buffer.from("{"));
  filler.add(batch, message(0, {}, { value: prefixed(message(0).value) }));
  filler.add(batch, message(1, {}, { value: refused }));
  filler.add(batch, message(2));
  expect(batch.rows.records()).toBe(2);
  expect(batch.deadLetters.map(({ source }) => source.value)).toEqual([refused]);
  const counted = await linesOf("conversation_export_ingest_schema_prefixes_total");
  expect(counted).toEqual([expect.stringMatching(/topic="messages".* 2$/)]);
});

it("counts messages and rows in the budget", () => {
  const { filler, batch, budget } = startFiller();
  const taken = message(0);
  filler.add(batch, taken);
  expect(batch.messageBytes).toBe(200 + (taken.value?.length ?? 0) + 3);
  expect(batch.budgetedBytes).toBe(batch.messageBytes + batch.rows.bytes());
  filler.add(batch, message(1, {}, { bytes: 5_000 }));
  expect(batch.messageBytes).toBe(200 + (taken.value?.length ?? 0) + 3 + 200 + 5_000);
  expect(budget.used()).toBe(batch.budgetedBytes);
});

it("gives a hundred unknown fields a label of their own", async () => {
  const { filler, batch, linesOf } = startFiller();
  for (let offset = 0; offset < 102; offset += 1) filler.add(batch, message(offset, { [`x${offset}`]: 1 }));
  filler.add(batch, message(102, { x0: 1 }));
  const counted = await linesOf("conversation_export_ingest_unknown_fields_total");
  expect(counted).toHaveLength(101);
  expect(counted).toContainEqual(expect.stringMatching(/field="other".* 2$/));
  expect(counted).toContainEqual(expect.stringMatching(/field="x0".* 2$/));
});

it("gives no label to what does not look like a name", async () => {
  const { filler, batch, linesOf } = startFiller();
  const odd = ["jane@example.com", "+49 151 2345678", "a b", "1x", "é", "x".repeat(65), ""];
  for (const [offset, name] of odd.entries()) filler.add(batch, message(offset, { [name]: 1 }));
  expect(await linesOf("conversation_export_ingest_unknown_fields_total")).toEqual([
    expect.stringMatching(/field="other".* 7$/),
  ]);
});

it("sets aside what cannot be read, and goes on behind it", () => {
  const { filler, batch } = startFiller();
  const unreadable = { lastOffset: 40, why: "cut off" };
  filler.add(batch, message(3, {}, { key: null, value: null, unreadable }));
  expect(batch.deadLetters.map(({ rejection }) => rejection.reason)).toEqual(["unreadable_batch"]);
  expect([...batch.offsets]).toEqual([[1, 41]]);
});

it("takes those out that are found to be erased, and keeps the rest of the batch", async () => {
  const world = { judgement: 1, now: NOW };
  let erased = new Set<string>();
  const { filler, batch, budget, noted, linesOf } = startFiller(({ id }) => erased.has(id), world);
  for (let offset = 0; offset < 4; offset += 1) filler.add(batch, message(offset));
  filler.add(batch, message(4, {}, { value: Buffer.from([0xff]) }));
  world.judgement = 2;
  const { rows } = batch;
  await filler.judge(batch);
  expect([batch.judgedBy, batch.rows === rows]).toEqual([2, true]);
  erased = new Set(["m0", "m2"]);
  // A failed request may still send it.
  const sent = batch.rows.inserts(0, 3).map(({ body }) => body);
  const before = Buffer.concat(sent);
  await filler.judge(batch);
  expect(Buffer.concat(sent).equals(before)).toBe(true);
  expect(rowsOf(batch)).toEqual(["m1", "m3"]);
  expect(batch.sources.map(({ offset }) => offset)).toEqual([1, 3]);
  expect([batch.deadLetters.length, [...batch.offsets]]).toEqual([1, [[1, 5]]]);
  expect(budget.used()).toBe(batch.messageBytes + batch.rows.bytes());
  expect(await linesOf("conversation_export_ingest_records_ignored_total")).toEqual([
    expect.stringMatching(/reason="suppressed".* 2$/),
  ]);
  expect(noted).toHaveLength(4);
});

it("is judged by what was known when it began, though more becomes known while ClickHouse is asked, and not when it does not answer", async () => {
  const world = { judgement: 1, now: NOW };
  let answer = (): boolean => {
    world.judgement = 2;
    return false;
  };
  const { filler, batch } = startFiller(() => answer(), world);
  filler.add(batch, message(0));
  world.judgement = 1;
  await filler.judge(batch);
  expect([batch.judgedBy, world.judgement]).toEqual([1, 2]);
  answer = () => {
    throw new Error("away");
  };
  await expect(filler.judge(batch)).rejects.toThrow("away");
  expect([batch.judgedBy, rowsOf(batch)]).toEqual([1, ["m0"]]);
});

it("takes a record anew that it has taken, although the clock of this machine was set back", async () => {
  const world = { judgement: 1, now: NOW };
  const erased = new Set<string>();
  const { filler, batch } = startFiller(({ id }) => erased.has(id), world);
  for (const offset of [0, 1]) filler.add(batch, message(offset, {}, offset === 1 ? { timestamp: -1 } : {}));
  filler.add(batch, message(2));
  world.now -= 3_600_000;
  erased.add("m2");
  await filler.judge(batch);
  expect(rowsOf(batch)).toEqual(["m0", "m1"]);
});
