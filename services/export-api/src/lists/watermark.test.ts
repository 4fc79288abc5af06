import type { Watermarks } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createWatermarkCache } from "./watermark.ts";

const FIRST = "2026-10-04T12:00:00.000001Z";
const LATER = "2026-10-04T12:00:09.000000Z";
const NOW = "2026-10-04T13:00:00.000000Z";
const AHEAD = "2026-10-04T13:00:00.000001Z";
const microsOf = (text: string): number => Date.parse(text) * 1000 + Number(text.slice(23, 26));

const setUp = () => {
  let clock = 0;
  let loads = 0;
  let answer: () => Promise<Watermarks> = async () => ({});
  const read = createWatermarkCache({
    load: () => {
      loads += 1;
      return answer();
    },
    maxAgeMs: 2_000,
    clock: () => clock,
    now: () => Date.parse(NOW),
  });
  return {
    read,
    loads: () => loads,
    pass: (ms: number) => void (clock += ms),
    answers: (next: () => Promise<Watermarks>) => void (answer = next),
    knows: (text: string) => void (answer = async () => ({ conversations: microsOf(text) })),
  };
};

it("is unknown until it is known, list by list", async () => {
  const { read, pass, knows } = setUp();
  expect(await read("conversations")).toBeUndefined();
  knows(FIRST);
  expect(await read("conversations")).toBeUndefined();
  pass(2_000);
  expect(await read("conversations")).toBe(FIRST);
  expect(await read("messages")).toBeUndefined();
});

it("loads once for all who ask, and again when the value is old", async () => {
  const { read, pass, knows, loads } = setUp();
  knows(FIRST);
  const all = await Promise.all(Array.from({ length: 20 }, () => read("conversations")));
  expect(new Set(all)).toEqual(new Set([FIRST]));
  pass(1_999);
  await read("conversations");
  expect(loads()).toBe(1);
  pass(1);
  knows(LATER);
  expect(await read("conversations")).toBe(LATER);
  expect(loads()).toBe(2);
});

it("keeps what it knows while loading fails, and does not ask all the time", async () => {
  const { read, pass, knows, answers, loads } = setUp();
  knows(FIRST);
  await read("conversations");
  answers(() => Promise.reject(new Error("away")));
  pass(2_000);
  expect(await read("conversations")).toBe(FIRST);
  expect(await read("conversations")).toBe(FIRST);
  expect(loads()).toBe(2);
  pass(2_000);
  knows(LATER);
  expect(await read("conversations")).toBe(LATER);
});

it("does not wait long for a load, and takes its answer when it comes", async () => {
  const { read, pass, knows, answers, loads } = setUp();
  knows(FIRST);
  await read("conversations");
  const { promise, resolve } = Promise.withResolvers<Watermarks>();
  answers(() => promise);
  pass(2_000);
  const startedAt = performance.now();
  expect(await read("conversations")).toBe(FIRST);
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  pass(8_000);
  expect(await read("conversations")).toBe(FIRST);
  expect(loads()).toBe(2);
  resolve({ conversations: microsOf(LATER) });
  expect(await read("conversations")).toBe(LATER);
});

it("waits for a fresh one after a quiet time, in place of one that is minutes old", async () => {
  const { read, pass, knows, answers } = setUp();
  knows(FIRST);
  await read("conversations");
  pass(12 * 60_000);
  const { promise, resolve } = Promise.withResolvers<Watermarks>();
  answers(() => promise);
  const [first, second] = [read("conversations"), read("conversations")];
  // Longer than a page waits while it knows a recent one.
  setTimeout(() => resolve({ conversations: microsOf(LATER) }), 400);
  expect([await first, await second]).toEqual([LATER, LATER]);
});

it("is unknown when no load has succeeded for ten seconds", async () => {
  const { read, pass, knows, answers } = setUp();
  knows(FIRST);
  await read("conversations");
  answers(() => Promise.reject(new Error("away")));
  pass(10_000);
  expect(await read("conversations")).toBe(FIRST);
  pass(1);
  expect(await read("conversations")).toBeUndefined();
  pass(2_000);
  knows(FIRST);
  expect(await read("conversations")).toBe(FIRST);
});

it("does not fall when a server is behind the others", async () => {
  const { read, pass, knows } = setUp();
  knows(LATER);
  await read("conversations");
  pass(2_000);
  knows(FIRST);
  expect(await read("conversations")).toBe(LATER);
});

it("does not take over what lies ahead of the clock", async () => {
  const { read, pass, knows } = setUp();
  knows(AHEAD);
  expect(await read("conversations")).toBeUndefined();
  for (const [stored, shown] of [
    [FIRST, FIRST],
    [AHEAD, FIRST],
    [NOW, NOW],
  ] as const) {
    pass(2_000);
    knows(stored);
    expect(await read("conversations")).toBe(shown);
  }
});

it.each([
  ["ahead of the clock", AHEAD],
  ["missing", undefined],
])("is unknown after ten seconds in which its instant was %s, though other lists had theirs", async (_, stored) => {
  const { read, pass, knows, answers } = setUp();
  knows(FIRST);
  await read("conversations");
  answers(async () => ({
    ...(stored !== undefined && { conversations: microsOf(stored) }),
    messages: microsOf(LATER),
  }));
  for (let seconds = 2; seconds <= 10; seconds += 2) {
    pass(2_000);
    expect(await read("conversations"), `after ${seconds} s`).toBe(FIRST);
  }
  pass(2_000);
  expect(await read("conversations")).toBeUndefined();
  expect(await read("messages")).toBe(LATER);
  pass(2_000);
  knows(LATER);
  expect(await read("conversations")).toBe(LATER);
});
