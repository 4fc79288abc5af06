import { expect, it } from "vitest";
import { readOldestWaiting } from "./queue-backlog.ts";

type StoredJob = Readonly<Record<string, string>>;

/** `job`: the oldest that waits; null: none. */
const stored = (job: StoredJob | null) => ({
  lindex: async (key: unknown, at: unknown) =>
    job !== null && key === "conversation-export:windows:wait" && at === -1 ? "7" : null,
  hmget: async (key: unknown, ...fields: unknown[]) =>
    fields.map((field) => (key === "conversation-export:windows:7" ? (job?.[String(field)] ?? null) : null)),
});
const since = (job: StoredJob | null) => readOldestWaiting(stored(job), "windows");

it("reads since when the oldest job could run", async () => {
  expect(await since(null)).toBeNull();
  expect(await since({})).toBeNull();
  expect(await since({ timestamp: "1000", opts: "{}" })).toBe(1_000);
  // A schedule adds its next run one interval early.
  const delayed = { timestamp: "1000", opts: '{"delay":60000}' };
  expect(await since(delayed)).toBe(61_000);
  expect(await since({ ...delayed, processedOn: "90000" })).toBe(90_000);
});
