import { expect, it } from "vitest";
import { type Firing, noteFirings } from "./alert-monitor.ts";

it("an alert fires from when it is first seen until it is gone, and again later", () => {
  const seen = new Map<string, Firing>();
  const redis = { state: "firing", labels: { alertname: "RedisAway" } } as const;
  const times = (): (readonly [number, number | null])[] =>
    [...seen.values()].map(({ from, to }) => [from, to]);
  noteFirings(seen, [{ ...redis, state: "pending" }], 1);
  expect(times()).toEqual([]);
  noteFirings(seen, [redis], 2);
  noteFirings(seen, [redis], 3);
  expect(times()).toEqual([[2, null]]);
  noteFirings(seen, [], 4);
  noteFirings(seen, [], 5);
  expect(times()).toEqual([[2, 4]]);
  noteFirings(seen, [redis], 6);
  expect(times()).toEqual([[6, null]]);
  expect([...seen.values()][0]).toMatchObject({ alert: "RedisAway", labels: redis.labels });
});
