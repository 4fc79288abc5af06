import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createLoop } from "./loop.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("begins at once and pauses after each turn", async () => {
  const turn = vi.fn(async () => {});
  const loop = createLoop({ turn, pauseMs: 100 });
  await loop.start();
  expect(turn).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(250);
  expect(turn).toHaveBeenCalledTimes(3);
  await loop.stop();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(turn).toHaveBeenCalledTimes(3);
});

it("can begin with a pause, and ask for the length of each", async () => {
  const turn = vi.fn(async () => {});
  const pauses = [10, 100, 1_000];
  const loop = createLoop({ turn, pauseMs: () => pauses.shift() ?? 0, pauseFirst: true });
  await loop.start();
  await vi.advanceTimersByTimeAsync(9);
  expect(turn).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(turn).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(100);
  expect(turn).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(999);
  expect(turn).toHaveBeenCalledTimes(2);
  await loop.stop();
});

it("waits for the turn under way when it is stopped", async () => {
  const work = Promise.withResolvers<void>();
  const loop = createLoop({ turn: () => work.promise, pauseMs: 100 });
  await loop.start();
  let stopped = false;
  const stopping = loop.stop().then(() => {
    stopped = true;
  });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(stopped).toBe(false);
  work.resolve();
  await stopping;
});

it("does nothing when it was stopped before it began, or never began", async () => {
  const turn = vi.fn(async () => {});
  const loop = createLoop({ turn, pauseMs: 100 });
  await loop.stop();
  await loop.start();
  await loop.stop();
  expect(turn).not.toHaveBeenCalled();
});
