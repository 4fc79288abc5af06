import { expect, it, vi } from "vitest";
import { drainWithin } from "./drain.ts";

const start = (drain: () => void | Promise<void>, waitMs: number) => {
  const [onLate, onError] = [vi.fn<() => void>(), vi.fn<(error: unknown) => void>()];
  return { onLate, onError, done: drainWithin(drain, { waitMs, onLate, onError }) };
};

it("waits for the drain", async () => {
  const work = Promise.withResolvers<void>();
  const { onLate, onError, done } = start(() => work.promise, 60_000);
  work.resolve();
  await done;
  expect([onLate.mock.calls, onError.mock.calls]).toEqual([[], []]);
});

it("waits no longer than a rejoin can, and still reports a failure behind it", async () => {
  const work = Promise.withResolvers<void>();
  const { onLate, onError, done } = start(() => work.promise, 5);
  await done;
  expect(onLate).toHaveBeenCalledTimes(1);
  const failure = new Error("late failure");
  work.reject(failure);
  await expect.poll(() => onError.mock.calls).toEqual([[failure]]);
});

it("reports a drain that throws", async () => {
  const failure = new Error("a bug");
  const { onError, done } = start(() => {
    throw failure;
  }, 60_000);
  await done;
  expect(onError.mock.calls).toEqual([[failure]]);
});
