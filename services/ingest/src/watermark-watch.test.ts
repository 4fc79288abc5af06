import { setImmediate as nextTurn } from "node:timers/promises";
import type { PartitionProgress } from "@conversation-export/bus";
import type { ListName } from "@conversation-export/domain";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import type { Watermarks } from "@conversation-export/warehouse";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createIngestMetrics } from "./ingest-metrics.ts";
import { createWatermarkWatch } from "./watermark-watch.ts";

const INTERVAL_MS = 2_000;
const TOPICS = new Map<string, ListName>([
  ["conversations", "conversations"],
  ["messages", "messages"],
]);

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const setUp = () => {
  const topics = new Map<string, PartitionProgress[] | Error>();
  const stored: { list: string; instant: number }[] = [];
  const warnings: unknown[] = [];
  const registry = createMetrics({ service: "test" });
  const log = createLogger({ service: "test", level: "silent" });
  log.warn = (fields: unknown) => void warnings.push(fields);
  let clock = 1_000;
  let known: Watermarks | Error = {};
  let saving: Promise<void> = Promise.resolve();
  let warehouseClock = Infinity;
  const watch = createWatermarkWatch({
    progress: {
      start: async () => {},
      stop: async () => {},
      fetch: async (topic) => {
        const progress = topics.get(topic) ?? [];
        await nextTurn();
        // The clock advances while the brokers are asked.
        clock += 500;
        if (progress instanceof Error) throw progress;
        return progress;
      },
    },
    store: {
      load: async () => {
        if (known instanceof Error) throw known;
        return known;
      },
      save: async (list, instant) => {
        await saving;
        if (instant > warehouseClock) return false;
        stored.push({ list, instant });
        return true;
      },
    },
    lists: TOPICS,
    intervalMs: INTERVAL_MS,
    metrics: createIngestMetrics(registry),
    registry,
    log,
    now: () => clock,
  });
  return {
    watch,
    stored,
    warnings,
    at: (topic: string, end: number, committed: number) =>
      void topics.set(topic, [{ partition: 0, start: 0, end, committed }]),
    fail: (topic: string) => void topics.set(topic, new Error("away")),
    knows: (watermarks: Watermarks | Error) => void (known = watermarks),
    warehouseAt: (instant: number) => void (warehouseClock = instant),
    saveAfter: (promise: Promise<void>) => void (saving = promise),
    tick: async (now: number) => {
      clock = now;
      await vi.advanceTimersByTimeAsync(INTERVAL_MS);
      await nextTurn();
    },
    metrics: async (name: string) =>
      (await registry.text()).split("\n").filter((line) => line.startsWith(name)),
  };
};

it("stores the instant before the brokers were asked, for each topic", async () => {
  const { watch, stored, at, tick, metrics } = setUp();
  at("conversations", 5, 5);
  at("messages", 9, 8);
  await watch.start();
  await nextTurn();
  expect(stored).toEqual([{ list: "conversations", instant: 1_000_000 }]);
  at("messages", 20, 9);
  await tick(10_000);
  expect(stored.slice(1)).toEqual([
    { list: "conversations", instant: 10_000_000 },
    { list: "messages", instant: 1_000_000 },
  ]);
  await tick(20_000);
  expect(await metrics("ingest_watermark_seconds")).toHaveLength(2);
  await watch.stop();
});

it("stores only larger watermarks than the stored one", async () => {
  const { watch, stored, at, tick, knows } = setUp();
  knows({ conversations: 50_000_000 });
  at("conversations", 5, 5);
  await watch.start();
  await nextTurn();
  stored.length = 0;
  await tick(40_000);
  expect(stored).toEqual([]);
  await tick(60_000);
  expect(stored).toEqual([{ list: "conversations", instant: 60_000_000 }]);
  await watch.stop();
});

it("warns once about a failing step, counts every failure, and does not affect the other topic", async () => {
  const { watch, stored, warnings, at, fail, tick, knows, metrics } = setUp();
  knows(new Error("away"));
  fail("conversations");
  at("messages", 5, 5);
  await watch.start();
  for (let round = 1; round <= 4; round += 1) await tick(round * 10_000);
  expect(stored.map(({ list }) => list)).toEqual(Array.from({ length: 5 }, () => "messages"));
  expect(warnings).toHaveLength(2);
  expect((await metrics("ingest_watermark_failures_total")).sort()).toEqual([
    expect.stringMatching(/topic="all",step="load".* 5$/),
    expect.stringMatching(/topic="conversations",step="note".* 5$/),
  ]);
  await watch.stop();
});

it("continues to note while the warehouse is slow", async () => {
  const { watch, stored, at, tick, saveAfter } = setUp();
  const { promise, resolve } = Promise.withResolvers<void>();
  saveAfter(promise);
  at("conversations", 5, 5);
  await watch.start();
  await tick(10_000);
  at("conversations", 9, 5);
  await tick(20_000);
  at("conversations", 12, 5);
  await tick(30_000);
  expect(stored).toEqual([]);
  resolve();
  at("conversations", 12, 9);
  await tick(40_000);
  await tick(50_000);
  expect(stored.map(({ instant }) => instant)).toContain(20_000_000);
  await watch.stop();
});

it("warns once while its clock is ahead of the warehouse's, and reports only stored watermarks", async () => {
  const { watch, stored, warnings, at, tick, warehouseAt, metrics } = setUp();
  warehouseAt(15_000_000);
  at("conversations", 5, 5);
  await watch.start();
  for (const now of [10_000, 20_000, 30_000]) await tick(now);
  expect(stored.map(({ instant }) => instant)).toEqual([1_000_000, 11_000_000]);
  expect(warnings).toHaveLength(1);
  expect(await metrics("ingest_watermark_failures_total")).toEqual([
    expect.stringMatching(/topic="conversations",step="ahead".* 2$/),
  ]);
  expect(await metrics("ingest_watermark_seconds")).toEqual([expect.stringMatching(/ 20$/)]);
  warehouseAt(Infinity);
  await tick(40_000);
  expect(stored.at(-1)?.instant).toBe(40_000_000);
  await watch.stop();
});
