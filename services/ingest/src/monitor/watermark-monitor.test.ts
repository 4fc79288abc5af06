import { setImmediate as nextTurn } from "node:timers/promises";
import type { TopicProgress } from "@conversation-export/bus";
import type { ListName } from "@conversation-export/domain";
import type { TopicIdentity, Watermarks } from "@conversation-export/warehouse";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createWatermarkMonitor } from "./watermark-monitor.ts";

const INTERVAL_MS = 2_000;
const TOPICS = new Map<string, ListName>([
  ["conversations", "conversations"],
  ["messages", "messages"],
]);

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const setUp = () => {
  const topics = new Map<string, TopicProgress | Error>();
  const stored: { list: string; instant: number }[] = [];
  const warnings: unknown[] = [];
  const errors: unknown[] = [];
  const { registry, metrics, log, linesOf } = createTestMetrics();
  log.warn = (fields: unknown) => void warnings.push(fields);
  log.error = (fields: unknown) => void errors.push(fields);
  let clock = 1_000;
  let known: Watermarks | Error = {};
  const identities: Partial<Record<ListName, TopicIdentity>> = {};
  let saving: Promise<void> = Promise.resolve();
  let savingTopic: Error | undefined;
  let warehouseClock = Infinity;
  const watch = createWatermarkMonitor({
    progress: {
      start: async () => {},
      stop: async () => {},
      fetch: async (topic) => {
        const progress = topics.get(topic) ?? { topicId: null, partitions: [] };
        await nextTurn();
        // Time passes while the brokers answer.
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
      loadTopics: () => Promise.resolve(identities),
      save: async (list, instant) => {
        await saving;
        if (instant > warehouseClock) return false;
        stored.push({ list, instant });
        return true;
      },
      saveTopic: async (list, { topicId, createdAnew }) => {
        if (savingTopic instanceof Error) throw savingTopic;
        identities[list] = { topicId, createdAnew };
      },
    },
    lists: TOPICS,
    intervalMs: INTERVAL_MS,
    metrics,
    registry,
    log,
    now: () => clock,
  });
  return {
    watch,
    stored,
    warnings,
    errors,
    identities,
    at: (topic: string, end: number, committed: number | null, topicId: string | null = "one") =>
      void topics.set(topic, { topicId, partitions: [{ partition: 0, start: 0, end, committed }] }),
    fail: (topic: string) => void topics.set(topic, new Error("away")),
    knows: (watermarks: Watermarks | Error) => void (known = watermarks),
    warehouseAt: (instant: number) => void (warehouseClock = instant),
    failSavingTopics: (error?: Error) => void (savingTopic = error),
    saveAfter: (promise: Promise<void>) => void (saving = promise),
    tick: async (now: number) => {
      clock = now;
      await vi.advanceTimersByTimeAsync(INTERVAL_MS);
      await nextTurn();
    },
    metrics: linesOf,
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
  expect(await metrics("conversation_export_ingest_watermark_age_seconds")).toHaveLength(2);
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
  expect(stored).toEqual([]);
  expect(warnings).toHaveLength(2);
  expect((await metrics("conversation_export_ingest_watermark_failures_total")).sort()).toEqual([
    expect.stringMatching(/topic="all",step="load".* 5$/),
    expect.stringMatching(/topic="conversations",step="note".* 5$/),
  ]);
  knows({});
  await tick(50_000);
  expect(stored.map(({ list }) => list)).toEqual(["messages"]);
  await watch.stop();
});

it.each([
  "running",
  "starting",
])("says that a topic was created anew, once, when it finds another id %s", async (when) => {
  const { watch, stored, errors, identities, at, tick, metrics } = setUp();
  if (when === "running") at("messages", 60, 60);
  else identities.messages = { topicId: "one", createdAnew: null };
  if (when === "starting") at("messages", 100, null, "two");
  await watch.start();
  await tick(10_000);
  stored.length = 0;
  // The offset of the former topic does not count, though both are as long.
  at("messages", 60, null, "two");
  await tick(20_000);
  expect(stored).toEqual([]);
  at("messages", 60, 60, "two");
  await tick(30_000);
  await tick(40_000);
  expect(stored.map(({ instant }) => instant)).toEqual([30_000_000, 40_000_000]);
  expect(identities.messages).toEqual({ topicId: "two", createdAnew: expect.any(Number) });
  expect(errors).toEqual([{ topic: "messages" }]);
  const seconds = (identities.messages?.createdAnew ?? 0) / 1000;
  expect(await metrics("conversation_export_ingest_topic_created_anew_timestamp_seconds")).toEqual([
    expect.stringMatching(new RegExp(`topic="messages".* ${seconds}$`)),
  ]);
  await watch.stop();
});

it("stores the id of a topic before its first watermark, and no watermark without it", async () => {
  const { watch, stored, identities, at, tick, failSavingTopics } = setUp();
  failSavingTopics(new Error("away"));
  at("messages", 60, 5);
  await watch.start();
  await tick(10_000);
  at("messages", 60, 60);
  await tick(20_000);
  expect([stored, identities]).toEqual([[], {}]);
  at("messages", 90, 60);
  failSavingTopics();
  await tick(30_000);
  expect(identities).toEqual({ messages: { topicId: "one", createdAnew: null } });
  at("messages", 90, 90);
  await tick(40_000);
  expect(stored.map(({ list }) => list)).toContain("messages");
  await watch.stop();
});

it("says that a topic was created anew whose former id could not be stored", async () => {
  const { watch, errors, identities, at, tick, failSavingTopics } = setUp();
  failSavingTopics(new Error("away"));
  at("messages", 60, 5, "one");
  await watch.start();
  await tick(10_000);
  at("messages", 60, null, "two");
  await tick(20_000);
  failSavingTopics();
  await tick(30_000);
  await tick(40_000);
  expect(identities.messages).toEqual({ topicId: "two", createdAnew: expect.any(Number) });
  expect(errors).toEqual([{ topic: "messages" }]);
  await watch.stop();
});

it("reports when another process found a topic created anew, and does not find it itself", async () => {
  const { watch, errors, identities, at, tick, metrics } = setUp();
  at("messages", 60, 5, "one");
  await watch.start();
  await tick(10_000);
  identities.messages = { topicId: "two", createdAnew: 7_000 };
  at("messages", 60, null, "two");
  await tick(20_000);
  expect([errors, identities.messages]).toEqual([[], { topicId: "two", createdAnew: 7_000 }]);
  expect(await metrics("conversation_export_ingest_topic_created_anew_timestamp_seconds")).toEqual([
    expect.stringMatching(/topic="messages".* 7$/),
  ]);
  await watch.stop();
});

it("reports what is stored while the brokers are away", async () => {
  const { watch, identities, fail, metrics } = setUp();
  identities.messages = { topicId: "two", createdAnew: 7_000 };
  fail("messages");
  await watch.start();
  await nextTurn();
  expect(await metrics("conversation_export_ingest_topic_created_anew_timestamp_seconds")).toEqual([
    expect.stringMatching(/topic="messages".* 7$/),
  ]);
  await watch.stop();
});

it("says nothing where brokers give no ids", async () => {
  const { watch, errors, at, tick } = setUp();
  at("messages", 5, 5, null);
  await watch.start();
  at("messages", 5, 5, "one");
  await tick(10_000);
  at("messages", 5, 5, null);
  await tick(20_000);
  expect(errors).toEqual([]);
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
  expect(await metrics("conversation_export_ingest_watermark_failures_total")).toEqual([
    expect.stringMatching(/topic="conversations",step="ahead".* 2$/),
  ]);
  expect(await metrics("conversation_export_ingest_watermark_age_seconds")).toEqual([
    expect.stringMatching(/ 20$/),
  ]);
  warehouseAt(Infinity);
  await tick(40_000);
  expect(stored.at(-1)?.instant).toBe(40_000_000);
  await watch.stop();
});
