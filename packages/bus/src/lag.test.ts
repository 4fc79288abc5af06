import { expect, it } from "vitest";
import { lagOf } from "./lag.ts";

it.each([
  ["caught up", { start: 0, end: 10, position: 10 }, 0],
  ["behind", { start: 0, end: 10, position: 4 }, 6],
  ["nothing committed: from the start", { start: 3, end: 10, position: null }, 7],
  ["the literal -2 (earliest)", { start: 3, end: 10, position: -2 }, 7],
  ["the literal -1 (none)", { start: 3, end: 10, position: -1 }, 7],
  ["deleted by retention", { start: 8, end: 10, position: 2 }, 2],
  ["ahead of a stale end", { start: 0, end: 10, position: 12 }, 0],
])("lag: %s", (_name, partition, lag) => {
  expect(lagOf(partition)).toBe(lag);
});
