import type { RetentionData } from "@conversation-export/queue";
import {
  createRetentionStore,
  type Cutoff,
  RETENTION_TABLES,
  type Session,
} from "@conversation-export/warehouse";
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

/** Of a warehouse without records. */
function emptySession() {
  type Options = { readonly parameters?: { readonly clients?: string[]; readonly cutoffs?: number[] } };
  const sent: (string | number)[][] = [];
  const note = ({ parameters: { clients = [], cutoffs = [] } = {} }: Options = {}): void =>
    void sent.push(clients, cutoffs);
  const session = {
    names: { cluster: null, local: (table: string) => table },
    with: () => session,
    rows: (name: string, query: string, options?: Options) => {
      note(options);
      if (name === "session.clock") return Promise.resolve([{ ms: String(NOW) }]);
      if (name === "retention.settled") return Promise.resolve([{ settled: "0" }]);
      if (query.includes("GROUP BY")) return Promise.resolve([]);
      const rows = query.includes("uniqExact(client_id)") ? options?.parameters?.clients?.length : 0;
      return Promise.resolve([{ rows: String(rows) }]);
    },
    command: (_name: string, _query: string, options?: Options) => {
      note(options);
      return Promise.resolve();
    },
    insert: () => Promise.resolve(),
    commandEverywhere: () => Promise.resolve(),
  };
  return { session: session as unknown as Session, sent };
}

it.each([
  "-",
  "'",
  "€",
])("sends thousands of clients named with %s in parameters that ClickHouse takes", async (sign) => {
  const names = Array.from({ length: 5_000 }, (_, at) => `${sign.repeat(30)}${at}`);
  const { session, sent } = emptySession();
  const retention = createRetention({
    clients: { listClients: () => Promise.resolve(names.map((name) => client(name, 30))) },
    store: createRetentionStore({ session, runUpload: () => Promise.resolve() }),
    now: () => NOW,
    onErased: () => {},
  });
  const result = await retention.run(jobContext({ clientId: null, dryRun: false }));
  expect(result.clients).toHaveLength(5_000);
  expect(result.tables).toHaveLength(RETENTION_TABLES.length);
  expect(new Set(sent.flat())).toEqual(new Set([...names, (NOW - 30 * DAY) * 1000]));
  const lengths = sent.map((values) => {
    const texts = values.map((one) => (typeof one === "string" ? `'${one.replaceAll("'", "\\'")}'` : one));
    return new URLSearchParams([["", `[${texts.join()}]`]]).toString().length;
  });
  expect(Math.max(...new Set(lengths))).toBeLessThan(131_072);
});

it("adds up what groups of clients had", async () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `${at}`.padStart(40, "c"));
  const groups: number[] = [];
  const retention = createRetention({
    clients: { listClients: () => Promise.resolve(names.map((name) => client(name, 30))) },
    store: {
      serverTime: () => Promise.resolve(NOW),
      expired: (cutoffs) => {
        groups.push(cutoffs.length);
        return Promise.resolve({
          count: () => Promise.resolve(cutoffs.map(({ clientId }) => ({ clientId, rows: 2 }))),
          erase: () => Promise.resolve({ dropped: 1 }),
          end: () => Promise.resolve(),
        });
      },
    },
    now: () => NOW,
    onErased: () => {},
  });
  const { tables } = await retention.run(jobContext({ clientId: null, dryRun: false }));
  const byClient = names.map((clientId) => ({ clientId, rows: 2 }));
  expect(groups.length).toBeGreaterThan(1);
  expect(tables).toEqual(
    RETENTION_TABLES.map((table) => ({ table, rows: 10_000, rowsDropped: groups.length, byClient })),
  );
});
