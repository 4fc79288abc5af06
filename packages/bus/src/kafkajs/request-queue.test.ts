import { createRequire } from "node:module";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { patchKafkajs } from "./patches.ts";

type Queue = {
  pending: unknown[];
  checkPendingRequests(): void;
  maybeThrottle(ms: number): void;
};

const createQueue = (): Queue => {
  const require = createRequire(import.meta.url);
  const RequestQueue = require("kafkajs/src/network/requestQueue/index.js") as new (options: object) => Queue;
  return new RequestQueue({ maxInFlightRequests: 0, requestTimeout: 1_000, logger: { debug: () => {} } });
};

beforeEach(() => {
  patchKafkajs();
  patchKafkajs();
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

it("sets no timer when no request waits, also while the broker throttles", () => {
  createQueue().checkPendingRequests();
  const throttled = createQueue();
  throttled.maybeThrottle(500);
  throttled.checkPendingRequests();
  expect(vi.getTimerCount()).toBe(0);
});

it("looks again while a request waits, when the throttle ends at the latest", () => {
  const waiting = createQueue();
  waiting.pending.push({});
  waiting.checkPendingRequests();
  expect(vi.getTimerCount()).toBe(1);
  const throttled = createQueue();
  throttled.maybeThrottle(500);
  throttled.pending.push({});
  const looked = vi.spyOn(throttled, "checkPendingRequests");
  throttled.checkPendingRequests();
  vi.advanceTimersByTime(499);
  expect(looked).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1);
  expect(looked).toHaveBeenCalledTimes(2);
});
