import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unlessAborted, within } from "./within.ts";

/** Fake timers run an immediate 1 ms after its timer. */
const PAST = 1_001;

const never = (): Promise<never> => Promise.withResolvers<never>().promise;
const tooLate = (): never => {
  throw new Error("too late");
};

describe("within", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("gives what the work gives, and leaves no timer behind", async () => {
    await expect(within(Promise.resolve(1), 1_000, tooLate)).resolves.toBe(1);
    await expect(within(Promise.reject(new Error("bad")), 1_000, tooLate)).rejects.toThrow("bad");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("gives what it was given for lateness, a value or an error", async () => {
    const late = within(never(), 1_000, () => "late");
    const failed = expect(within(never(), 1_000, tooLate)).rejects.toThrow("too late");
    await vi.advanceTimersByTimeAsync(PAST);
    expect(await late).toBe("late");
    await failed;
    expect(vi.getTimerCount()).toBe(0);
  });

  it("drops a rejection that comes after the deadline", async () => {
    const work = Promise.withResolvers<never>();
    const late = within(work.promise, 1_000, () => "late");
    await vi.advanceTimersByTimeAsync(PAST);
    work.reject(new Error("nobody listens"));
    expect(await late).toBe("late");
  });
});

it("prefers an answer that waits to be read when this process has stalled", async () => {
  const answer = Promise.withResolvers<string>();
  const asked = within(answer.promise, 5, tooLate);
  // Both timers are due when the loop runs again; the answer's runs second.
  setTimeout(() => answer.resolve("in time"), 10);
  const end = performance.now() + 50;
  while (performance.now() < end);
  expect(await asked).toBe("in time");
});

describe("unlessAborted", () => {
  it("gives what the work gives, or throws the reason of the signal", async () => {
    const abort = new AbortController();
    await expect(unlessAborted(Promise.resolve(1), abort.signal)).resolves.toBe(1);
    const waiting = unlessAborted(never(), abort.signal);
    abort.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
    await expect(unlessAborted(sleep(1), abort.signal)).rejects.toThrow("stopped");
  });
});
