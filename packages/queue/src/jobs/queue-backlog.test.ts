import { expect, it } from "vitest";
import { readOldestWaiting } from "./queue-backlog.ts";

const stored = (job: readonly (string | null)[] | null) => ({
  lindex: async () => (job === null ? null : "7"),
  hmget: async () => [...(job ?? [])],
});
const since = (job: readonly (string | null)[] | null) => readOldestWaiting(stored(job), "windows");

it("reads since when the oldest job could run", async () => {
  expect(await since(null)).toBeNull();
  expect(await since([null, null, null])).toBeNull();
  expect(await since(["1000", "{}", null])).toBe(1_000);
  // A schedule adds its next run one interval early.
  expect(await since(["1000", '{"delay":60000}', null])).toBe(61_000);
  expect(await since(["1000", '{"delay":60000}', "90000"])).toBe(90_000);
});
