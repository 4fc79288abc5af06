import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Batch } from "@conversation-export/warehouse";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBatchCutter, createTopicBatches, isFull, type TopicBatch } from "./topic-batch.ts";

const createBatches = (now = () => 7) =>
  createTopicBatches({
    topic: "messages",
    type: "message.exported",
    landingDays: null,
    traces: null,
    gate: { judgement: () => 3 },
    now,
  });

const withRows = (batch: TopicBatch, rows: Partial<Batch>): TopicBatch => ({
  ...batch,
  rows: { ...batch.rows, ...rows },
});

it("opens an empty batch of an epoch, judged as of now", () => {
  const batch = createBatches().open(3);
  expect(batch).toMatchObject({ epoch: 3, openedAt: 7, messageBytes: 0, budgetedBytes: 0, judgedBy: 3 });
  expect(batch.trace).toBeNull();
  expect([batch.rows.records(), batch.sources, batch.deadLetters, [...batch.offsets]]).toEqual([
    0,
    [],
    [],
    [],
  ]);
});

it("uses the memory of a settled batch for the next one, cleared", () => {
  const batches = createBatches();
  let cleared = 0;
  const settled = withRows(batches.open(1), {
    bytes: () => 800,
    capacity: () => 1000,
    clear: () => cleared++,
  });
  batches.reuse(settled);
  expect(cleared).toBe(1);
  expect(batches.open(2).rows).toBe(settled.rows);
  expect(batches.open(2).rows).not.toBe(settled.rows);
});

it("begins a batch as large as the one before, so that its rows are not copied while it grows", () => {
  const batches = createBatches();
  const least = batches.open(1).rows.capacity();
  const full = 8 * least;
  const before = batches.open(1);
  before.rows.largest = () => full;
  expect(batches.open(1).rows.capacity()).toBeGreaterThanOrEqual(full);
  expect(batches.open(1).rows.capacity()).toBe(least);
});

it("keeps no memory of a batch that is dropped", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const batches = createBatches();
  const rows = new WeakRef(batches.open(1).rows);
  // A WeakRef's target lives until the present turn ends.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(rows.deref()).toBeUndefined();
});

it("gives memory back that a batch has hardly used, and what is more than two batches", () => {
  const batches = createBatches();
  const small = withRows(batches.open(1), { bytes: () => 124, capacity: () => 1000 });
  const full = [1, 2, 3].map(() => withRows(batches.open(1), { bytes: () => 125, capacity: () => 1000 }));
  for (const batch of [small, ...full]) batches.reuse(batch);
  const reused = [1, 2, 3].map(() => batches.open(2).rows);
  expect(full.map(({ rows }) => reused.includes(rows))).toEqual([true, true, false]);
  expect(reused).not.toContain(small.rows);
});

it("is full by messages, bytes or partitions", () => {
  const limits = { maxRecords: 2, maxBytes: 100, maxAgeMs: 1 };
  const batch = createBatches().open(1);
  const message = {} as (typeof batch.sources)[number];
  expect(isFull(batch, limits)).toBe(false);
  expect(isFull({ ...batch, sources: [message, message] }, limits)).toBe(true);
  expect(isFull(withRows(batch, { bytes: () => 100 }), limits)).toBe(true);
  expect(isFull(withRows(batch, { spansTooManyPartitions: () => true }), limits)).toBe(true);
});

describe("createBatchCutter", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const startCutter = () => {
    const onDue = vi.fn<() => void>();
    const batches = createBatches(Date.now);
    return { onDue, cutter: createBatchCutter({ batches, limits: { maxAgeMs: 100 }, now: Date.now, onDue }) };
  };

  it("keeps one batch open until it is cut", () => {
    const { cutter } = startCutter();
    expect([cutter.current(), cutter.cut()]).toEqual([undefined, undefined]);
    const first = cutter.openFor(1);
    expect(cutter.openFor(1)).toBe(first);
    expect(cutter.cut()).toBe(first);
    expect(cutter.current()).toBe(undefined);
    expect(cutter.openFor(2)).not.toBe(first);
  });

  it("is due once the batch has its age, and not for the next batch", () => {
    const { cutter, onDue } = startCutter();
    cutter.openFor(1);
    vi.advanceTimersByTime(99);
    expect([cutter.isDue(), onDue.mock.calls.length]).toEqual([false, 0]);
    vi.advanceTimersByTime(1);
    expect([cutter.isDue(), onDue.mock.calls.length]).toEqual([true, 1]);
    cutter.cut();
    cutter.openFor(1);
    expect(cutter.isDue()).toBe(false);
  });

  it("lets a batch grow three times older while many messages lie ahead", () => {
    const { cutter, onDue } = startCutter();
    cutter.openFor(1);
    cutter.setBehind(true);
    vi.advanceTimersByTime(299);
    expect(onDue).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(onDue).toHaveBeenCalledTimes(1);
  });

  it("is due at once when it is asked to be, and never by age after it is stopped or cut", () => {
    const { cutter, onDue } = startCutter();
    cutter.openFor(1);
    cutter.makeDue();
    expect(cutter.isDue()).toBe(true);
    cutter.cut();
    cutter.openFor(1);
    cutter.stop();
    vi.advanceTimersByTime(1_000);
    expect(onDue).not.toHaveBeenCalled();
  });
});
