import type { RetentionData } from "@conversation-export/queue";
import { type Cutoff, RETENTION_TABLES } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { createRetention } from "./retention.ts";

const NOW = Date.parse("2026-10-20T00:00:00Z");
const DAY = 86_400_000;

const client = (clientId: string, retentionDays: number | null) => ({
  clientId,
  retentionDays,
  linkBounds: null,
  rateLimits: {},
  deleted: false,
  createdAt: "2026-01-01T00:00:00Z",
});

function setup(serverAheadMs = 0) {
  const asked: (readonly Cutoff[])[] = [];
  const erased: string[] = [];
  const ended: string[] = [];
  const stop = new AbortController();
  const retention = createRetention({
    clients: {
      listClients: () =>
        Promise.resolve([client("month", 30), client("ever", null), client("aeon", 400_000)]),
    },
    store: {
      serverTime: () => Promise.resolve(NOW + serverAheadMs),
      expired: (cutoffs) => {
        asked.push(cutoffs);
        return Promise.resolve({
          count: (table) => Promise.resolve(table === "messages" ? [] : [{ clientId: "month", rows: 5 }]),
          erase: (table) => {
            erased.push(table);
            if (table === "handoffs") stop.abort(new Error("stopping"));
            return Promise.resolve({ dropped: 2 });
          },
          end: () => {
            ended.push("end");
            return Promise.resolve();
          },
        });
      },
    },
    now: () => NOW,
    onErased: () => {},
  });
  const run = (data: RetentionData, signal = new AbortController().signal) =>
    retention.run(jobContext(data, { signal }));
  return { run, asked, erased, ended, stop };
}

it("asks only for clients that have a retention, and erases where there is something", async () => {
  const { run, asked, erased } = setup();
  const result = await run({ clientId: null, dryRun: false });
  expect(asked).toEqual([
    [
      { clientId: "month", before: (NOW - 30 * DAY) * 1000 },
      { clientId: "aeon", before: 0 },
    ],
  ]);
  expect(erased).toEqual(RETENTION_TABLES.filter((table) => table !== "messages"));
  expect(result.clients[0]).toEqual({ clientId: "month", days: 30, before: "2026-09-20T00:00:00.000Z" });
  expect(result.tables[0]).toMatchObject({ table: "conversations", rows: 5, rowsDropped: 2 });
});

it("erases nothing in a dry run, nor for a client without a retention", async () => {
  const { run, asked, erased } = setup();
  expect((await run({ clientId: "month", dryRun: true })).tables[0]).toMatchObject({
    rows: 5,
    rowsDropped: 0,
  });
  expect(await run({ clientId: "ever", dryRun: false })).toMatchObject({ clients: [], tables: [] });
  expect(erased).toEqual([]);
  expect(asked).toHaveLength(1);
});

it("stops between two tables, and says when there is no such client", async () => {
  const { run, erased, ended, stop } = setup();
  await expect(run({ clientId: null, dryRun: false }, stop.signal)).rejects.toThrow("stopping");
  expect(ended).toEqual(["end"]);
  expect(erased).toEqual(["conversations", "conversation_updates", "handoffs"]);
  await expect(run({ clientId: "nobody", dryRun: true })).rejects.toMatchObject({ code: "unknown_client" });
});

it.each([
  [59_000, 0],
  [-59_000, -59_000],
])("reckons by the earlier of two clocks that differ by %d ms", async (ahead, expected) => {
  const { run, asked } = setup(ahead);
  await run({ clientId: "month", dryRun: false });
  expect(asked).toEqual([[{ clientId: "month", before: (NOW + expected - 30 * DAY) * 1000 }]]);
});

it.each([61_000, -61_000])("erases nothing by clocks that differ by %d ms", async (ahead) => {
  const { run, asked } = setup(ahead);
  const failure = { code: "clock_ahead", retryable: false };
  await expect(run({ clientId: null, dryRun: false })).rejects.toMatchObject(failure);
  expect(asked).toEqual([]);
});
