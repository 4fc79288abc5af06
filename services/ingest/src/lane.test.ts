import type { BusMessage, MessageSlice, PartitionOffset } from "@conversation-export/bus";
import type { ExportRecord } from "@conversation-export/domain";
import type { Batch } from "@conversation-export/warehouse";
import { describe, expect, it, vi } from "vitest";
import { createBufferBudget } from "./batch/buffer-budget.ts";
import type { EventTraces } from "./event-traces.ts";
import { exportedMessage, NOW } from "./exported-message.fixture.ts";
import { createKeepTrying } from "./flush/keep-trying.ts";
import { createLane } from "./lane.ts";
import type { DeadLetterSink } from "./flush/dead-letter.ts";
import type { Sink } from "./flush/sink.ts";
import { createTestMetrics } from "./test-metrics.fixture.ts";

const message = (offset: number, change: Partial<BusMessage> = {}): BusMessage =>
  exportedMessage(offset, {}, change);

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

const startLane = (
  options: {
    maxRecords?: number;
    maxBytes?: number;
    landingDays?: number;
    suppresses?: (record: ExportRecord) => boolean;
    judged?: () => Promise<readonly boolean[]>;
    traces?: EventTraces;
  } = {},
) => {
  const writes: {
    records: number;
    batch: Batch;
    written: Promise<unknown>;
    end: (refused?: number[]) => void;
    fail: (error: Error) => void;
  }[] = [];
  const commits: { epoch: number; offsets: readonly PartitionOffset[] }[] = [];
  const buried: { reason: string; offset: number; headers?: unknown }[] = [];
  const fatal: unknown[] = [];
  const isErased = options.suppresses ?? ((): boolean => false);
  const onRoom = vi.fn<() => void>();
  const budget = createBufferBudget({ maxBytes: options.maxBytes ?? 1_000_000, onRoom });
  const sink: Sink = {
    write: (batch) => {
      const { promise, resolve, reject } = Promise.withResolvers<{
        refused: number[];
        reusable: boolean;
      }>();
      writes.push({
        records: batch.records(),
        batch,
        written: promise,
        end: (refused = []) => resolve({ refused, reusable: true }),
        fail: reject,
      });
      return promise;
    },
  };
  const deadLetters: DeadLetterSink = {
    send: (_topic, deadLetters) => {
      for (const { source, rejection, headers } of deadLetters) {
        buried.push({ reason: rejection.reason, offset: source.offset, ...(headers && { headers }) });
      }
      return Promise.resolve();
    },
  };
  const { metrics, log, linesOf } = createTestMetrics();
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
    landingDays: options.landingDays ?? null,
    clients: { note: () => {} },
    gap: null,
    inFlight: { during: (_stamp, _isSlow, write) => write() },
    keepTrying: createKeepTrying({ metrics, log }),
    gate: {
      ticket: () => Promise.resolve({ stamp: NOW * 1_000, generation: 1 }),
      judgement: () => 1,
      suspects: isErased,
      suppresses: options.judged ?? (async (records) => records.map(isErased)),
    },
    sink,
    deadLetters,
    traces: options.traces ?? null,
    commit: (epoch, offsets) => {
      commits.push({ epoch, offsets });
      return Promise.resolve("committed");
    },
    metrics,
    log,
    now: () => NOW,
    onFatal: (error) => fatal.push(error),
  });
  const write = async (index: number) => {
    await expect.poll(() => writes.length).toBeGreaterThan(index);
    const found = writes[index];
    if (found === undefined) throw new Error("no write");
    return found;
  };
  const offsets = (): number[] => commits.flatMap(({ offsets }) => offsets.map(({ offset }) => offset));
  return { lane, linesOf, budget, writes, write, commits, offsets, buried, fatal, onRoom };
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
    await expect.poll(() => fatal).toEqual([bug]);
    await lane.drain();
    expect(writes).toHaveLength(1);
    expect(offsets()).toEqual([]);
  });

  it("traces each batch: what it took, what of it is refused, its writing, and what comes again", async () => {
    const traced: string[] = [];
    const { lane, write, buried } = startLane({
      suppresses: ({ id }) => id === "m1",
      maxRecords: 4,
      traces: (topic) => ({
        take: ({ offset }, { kind }) => traced.push(`take ${topic} ${offset} ${kind}`),
        reject: ({ offset }, reason) => traced.push(`reject ${offset} ${reason}`),
        ignore: ({ offset }, reason) => traced.push(`ignore ${offset} ${reason}`),
        headersOf: ({ offset }) => ({ traceparent: `of ${offset}` }),
        flush: async ({ records }, work) => {
          traced.push(`flush ${records}`);
          await work();
          traced.push("flushed");
        },
        forget: () => traced.push("forget"),
      }),
    });
    lane.take(sliceOf([...range(0, 3), message(3, { value: Buffer.from("{") })]));
    await expect.poll(() => traced).toContain("ignore 1 suppressed");
    lane.take(sliceOf([message(4)]));
    lane.fence(2);
    (await write(0)).end([1]);
    await lane.drain();
    expect(traced).toEqual([
      "take messages 0 accepted",
      "take messages 1 accepted",
      "take messages 2 accepted",
      "take messages 3 rejected",
      "flush 4",
      "ignore 1 suppressed",
      "take messages 4 accepted",
      "forget",
      "reject 2 refused_by_warehouse",
      "flushed",
    ]);
    expect(buried).toEqual([
      { reason: "invalid_envelope", offset: 3, headers: { traceparent: "of 3" } },
      { reason: "refused_by_warehouse", offset: 2, headers: { traceparent: "of 2" } },
    ]);
  });

  it("takes no more than there is room for, and says when there is room again", async () => {
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

  it("commits behind control records under the epoch in which they came, whatever is still under way", async () => {
    const { lane, write, commits } = startLane();
    lane.take(sliceOf(range(0, 3)));
    const first = await write(0);
    lane.fence(2);
    lane.take({ ...sliceOf([], 2), nextOffset: 9 });
    first.end();
    await lane.drain();
    expect(commits.map(({ epoch, offsets }) => [epoch, ...offsets.map(({ offset }) => offset)])).toEqual([
      [1, 2],
      [2, 9],
    ]);
  });

  it("commits past messages that carry nothing", async () => {
    const { lane, writes, offsets } = startLane();
    lane.take({ ...sliceOf([message(0, { value: null })]), nextOffset: 4 });
    await lane.drain();
    expect([writes, offsets()]).toEqual([[], [4]]);
  });

  it("commits past a suppressed record only when what was found of it is stored", async () => {
    const stored = Promise.withResolvers<readonly boolean[]>();
    let asked = 0;
    const judged = (): Promise<readonly boolean[]> => {
      asked += 1;
      return asked === 1 ? Promise.reject(new Error("away")) : stored.promise;
    };
    const { lane, writes, offsets, linesOf } = startLane({ suppresses: () => true, judged });
    lane.take(sliceOf(range(0, 2)));
    await expect.poll(() => asked).toBe(2);
    expect(offsets()).toEqual([]);
    stored.resolve([true, true]);
    await lane.drain();
    expect([writes, offsets()]).toEqual([[], [2]]);
    expect(await linesOf("conversation_export_ingest_records_ignored_total")).toContainEqual(
      expect.stringMatching(/topic="messages",reason="suppressed".* 2$/),
    );
  });

  it("keeps events as they came only when it is asked to", async () => {
    const tables = async (landingDays?: number): Promise<string[]> => {
      const { lane, write } = startLane(landingDays === undefined ? {} : { landingDays });
      lane.take(sliceOf([message(0, { timestamp: -1 })]));
      const { batch, end } = await write(0);
      end();
      await lane.drain();
      return batch.inserts(0, 1).map(({ table }) => table);
    };
    expect(await tables(14)).toEqual(["landing", "record_dates", "changes", "messages"]);
    expect(await tables()).toEqual(["record_dates", "changes", "messages"]);
  });
});

describe("with landing", () => {
  it("lets one batch land ahead, and still settles them in their order", async () => {
    const { lane, write, writes, offsets, budget } = startLane({ landingDays: 14 });
    lane.take(sliceOf(range(0, 6)));
    const [first, second] = [await write(0), await write(1)];
    expect(writes).toHaveLength(2);
    second.end();
    await second.written;
    expect(offsets()).toEqual([]);
    first.end();
    (await write(2)).end();
    await lane.drain();
    expect(offsets()).toEqual([2, 4, 6]);
    expect(budget.used()).toBe(0);
  });

  it("settles a batch without records behind the one before it", async () => {
    const { lane, write, offsets, buried } = startLane({ landingDays: 14, maxRecords: 1 });
    lane.take(sliceOf([message(0)]));
    const first = await write(0);
    lane.take(sliceOf([message(1, { value: Buffer.from("{}") })]));
    await new Promise((resolve) => setImmediate(resolve));
    expect([buried, offsets()]).toEqual([[], []]);
    first.end();
    await lane.drain();
    expect(offsets()).toEqual([1, 2]);
  });

  it("commits nothing of the batch behind one that a bug has stopped", async () => {
    const { lane, write, offsets, fatal } = startLane({ landingDays: 14 });
    lane.take(sliceOf(range(0, 4)));
    const [first, second] = [await write(0), await write(1)];
    const bug = new Error("a bug");
    first.fail(bug);
    second.end();
    await expect.poll(() => fatal).toEqual([bug]);
    await lane.drain();
    await second.written;
    expect([offsets(), fatal]).toEqual([[], [bug]]);
  });
});
