import { expect, test } from "vitest";
import { createThrottle } from "./throttle.ts";

const signal = new AbortController().signal;

test("waits until ingest has caught up, and while its lag is unknown", async () => {
  const lags = [500, null, 11, 10, 0];
  const waited: (number | null)[] = [];
  const throttle = createThrottle({ lag: async () => lags.shift() ?? null, askEveryMs: 1 });
  await throttle.untilLagIs(10, signal, (lag) => waited.push(lag));
  expect(waited).toEqual([500, null, 11]);
  expect(lags).toEqual([0]);
});

test("does not ask without a bound", async () => {
  const throttle = createThrottle({ lag: () => Promise.reject(new Error("asked")) });
  await expect(throttle.untilLagIs(null, signal, () => {})).resolves.toBeUndefined();
});

test("ends waiting when it is aborted", async () => {
  const stop = new AbortController();
  const throttle = createThrottle({ lag: async () => 1, askEveryMs: 10_000 });
  const waiting = throttle.untilLagIs(0, stop.signal, () => stop.abort(new Error("cancelled")));
  await expect(waiting).rejects.toThrow("aborted");
});

test("gives events the time that their rate asks for", async () => {
  const throttle = createThrottle({ lag: async () => 0 });
  const startedAt = performance.now();
  await throttle.pace(10, startedAt - 10, 200, signal);
  expect(performance.now() - startedAt).toBeGreaterThan(35);
  const quick = performance.now();
  await throttle.pace(10, quick - 1_000, 200, signal);
  await throttle.pace(1_000_000, quick, null, signal);
  expect(performance.now() - quick).toBeLessThan(30);
});
