import type { BusMessage, MessageSlice, PartitionOffset } from "@conversation-export/bus";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import { describe, expect, it, vi } from "vitest";
import { createBufferBudget } from "./buffer-budget.ts";
import { createIngestMetrics } from "./ingest-metrics.ts";
import { createLane } from "./lane.ts";
import type { Sink } from "./sink.ts";

const NOW = Date.parse("2026-10-20T10:00:00Z");

const message = (offset: number, change: Partial<BusMessage> = {}): BusMessage => ({
  topic: "messages",
  partition: 0,
  offset,
  key: null,
  value: Buffer.from(
    JSON.stringify({
      specversion: "1.0",
      id: `e${offset}`,
      source: "/test",
      type: "message.exported",
      time: "2026-10-20T09:59:00Z",
      clientid: "acme",
      data: { _id: `m${offset}`, conversation_id: "c", date_created: "2026-10-20T09:00:00Z" },
    }),
  ),
  headers: {},
  timestamp: NOW,
  ...change,
});

const sliceOf = (messages: readonly BusMessage[], epoch = 1): MessageSlice => ({
  epoch,
  topic: "messages",
  partition: 0,
  messages,
  nextOffset: (messages.at(-1)?.offset ?? -1) + 1,
  highWatermark: (messages.at(-1)?.offset ?? -1) + 1,
});
const range = (from: number, to: number): BusMessage[] =>
  Array.from({ length: to - from }, (_, index) => message(from + index));

/** A lane whose writes wait until the test lets them end. */
const startLane = (options: { maxRecords?: number; maxBytes?: number } = {}) => {
  const writes: { records: number; end: (refused?: number[]) => void; fail: (error: Error) => void }[] = [];
  const commits: { epoch: number; offsets: readonly PartitionOffset[] }[] = [];
  const buried: { reason: string; offset: number }[] = [];
  const fatal: unknown[] = [];
  const onRoom = vi.fn<() => void>();
  const budget = createBufferBudget({ maxBytes: options.maxBytes ?? 1_000_000, onRoom });
  const sink: Sink = {
    write: (batch) =>
      new Promise((resolve, reject) => {
        writes.push({
          records: batch.records(),
          end: (refused = []) => resolve({ refused, smooth: true }),
          fail: reject,
        });
      }),
    bury: (_topic, letters) => {
      for (const { source, rejection } of letters)
        buried.push({ reason: rejection.reason, offset: source.offset });
      return Promise.resolve();
    },
  };
  const lane = createLane({
    topic: "messages",
    type: "message.exported",
    limits: {
      maxRecords: options.maxRecords ?? 2,
      maxBytes: 1_000_000,
      maxAgeMs: 20,
      maxTimeAheadMs: 300_000,
    },
    budget,
    sink,
    commit: (epoch, offsets) => {
      commits.push({ epoch, offsets });
      return Promise.resolve("committed");
    },
    metrics: createIngestMetrics(createMetrics({ service: "test" })),
    log: createLogger({ service: "test", level: "silent" }),
    now: () => NOW,
    onFatal: (error) => fatal.push(error),
  });
  const write = async (index: number) => {
    await vi.waitFor(() => expect(writes.length).toBeGreaterThan(index));
    const found = writes[index];
    if (found === undefined) throw new Error("no write");
    return found;
  };
  const offsets = (): number[] => commits.flatMap(({ offsets }) => offsets.map(({ offset }) => offset));
  return { lane, budget, writes, write, commits, offsets, buried, fatal, onRoom };
};

describe("createLane", () => {
  it("settles one batch after the other and commits behind each", async () => {
    const { lane, write, writes, offsets } = startLane();
    expect(lane.take(sliceOf(range(0, 5)))).toBe(5);
    (await write(0)).end();
    (await write(1)).end();
    expect(writes.length).toBeLessThan(4);
    (await write(2)).end();
    await lane.drain();
    expect(writes.map(({ records }) => records)).toEqual([2, 2, 1]);
    expect(offsets()).toEqual([2, 4, 5]);
  });

  it("commits nothing behind a batch that a bug has stopped, and does not hold up the end", async () => {
    const { lane, write, writes, offsets, fatal } = startLane();
    lane.take(sliceOf(range(0, 6)));
    const bug = new Error("a bug");
    (await write(0)).fail(bug);
    await vi.waitFor(() => expect(fatal).toEqual([bug]));
    await lane.drain();
    expect(writes).toHaveLength(1);
    expect(offsets()).toEqual([]);
  });

  it("buries the record that the warehouse refuses, and commits behind it", async () => {
    const { lane, write, buried, offsets } = startLane();
    lane.take(sliceOf(range(0, 2)));
    (await write(0)).end([1]);
    await lane.drain();
    expect(buried).toEqual([{ reason: "refused_by_warehouse", offset: 1 }]);
    expect(offsets()).toEqual([2]);
  });

  it("takes no more than there is room for, and tells when there is room again", async () => {
    const { lane, write, budget, onRoom } = startLane({ maxRecords: 100, maxBytes: 4_000 });
    const taken = lane.take(sliceOf(range(0, 50)));
    expect(taken).toBeGreaterThan(1);
    expect(taken).toBeLessThan(50);
    expect(budget.used()).toBeGreaterThanOrEqual(4_000);
    expect(lane.take(sliceOf(range(taken, 50)))).toBe(0);
    (await write(0)).end();
    await lane.drain();
    expect(budget.used()).toBe(0);
    expect(onRoom).toHaveBeenCalledTimes(1);
  });

  it("forgets what waits of an old epoch, and gives its room back", async () => {
    const { lane, write, writes, commits, budget } = startLane();
    lane.take(sliceOf(range(0, 5)));
    const first = await write(0);
    lane.fence(2);
    lane.take(sliceOf(range(2, 3), 2));
    first.end();
    (await write(1)).end();
    await lane.drain();
    expect(writes.map(({ records }) => records)).toEqual([2, 1]);
    expect(commits.map(({ epoch }) => epoch)).toEqual([1, 2]);
    expect(budget.used()).toBe(0);
  });

  it("takes the clock as the bus time of a message that has none", async () => {
    const { lane, write, buried } = startLane();
    lane.take(sliceOf([message(0, { timestamp: -1 })]));
    const { records, end } = await write(0);
    expect(records).toBe(1);
    end();
    await lane.drain();
    expect(buried).toEqual([]);
  });

  it("commits past messages that carry nothing", async () => {
    const { lane, write, offsets } = startLane();
    lane.take({ ...sliceOf([message(0, { value: null })]), nextOffset: 4 });
    (await write(0)).end();
    await lane.drain();
    expect(offsets()).toEqual([4]);
  });
});
