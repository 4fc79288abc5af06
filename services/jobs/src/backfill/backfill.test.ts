import type { BackfillData, JobContext } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { emptyCounts } from "./backfill-counts.ts";
import { createBackfill } from "./backfill.ts";

const unused = (): never => {
  throw new Error("not asked for");
};

/** A backfill of which nothing but its locks and its note in the ledger is looked at. */
const startBackfill = () => {
  const calls: string[] = [];
  let held = "";
  const backfill = createBackfill({
    reader: {} as never,
    landing: { coverage: () => Promise.resolve({ since: 0, asOf: 1 }) },
    windows: {
      markBackfilled: ({ from, to }, at) => {
        calls.push(`mark ${from}-${to} at ${at}, under ${held}`);
        return Promise.resolve();
      },
    },
    exclusive: {
      run: async (name, signal, work) => {
        held = name;
        try {
          return await work(signal);
        } finally {
          held = "";
        }
      },
    },
    correct: () => {
      calls.push(`correct, under ${held}`);
      return Promise.resolve(emptyCounts());
    },
    sourceOf: unused,
    events: { add: unused },
    connected: unused,
    throttle: { untilLagIs: () => Promise.resolve(), pace: () => Promise.resolve() },
    maxTimeAheadMs: 0,
    now: () => 7,
  });
  const contextOf = <D>(data: D): JobContext<D> => ({
    id: "job-part-0",
    data,
    attempt: 1,
    signal: new AbortController().signal,
    log: createLogger({ service: "test", level: "silent" }),
    state: undefined,
    save: unused,
    progress: () => Promise.resolve(),
  });
  return { backfill, contextOf, calls };
};

const WHOLE: BackfillData = {
  clientId: null,
  source: { kind: "landing" },
  window: { by: "upload", from: "1970-01-01T00:00:01Z", to: "1970-01-01T00:00:02Z" },
  dryRun: false,
  maxLag: null,
  rowsPerSecond: null,
};

it("notes the windows of which all records were computed anew", async () => {
  const { backfill, contextOf, calls } = startBackfill();
  await backfill.finish(contextOf(WHOLE), []);
  expect(calls).toEqual(["mark 1000000-2000000 at 7000, under windows"]);
});

it.each<[string, Partial<BackfillData>]>([
  ["a dry run", { dryRun: true }],
  ["one client", { clientId: "acme" }],
  ["everything", { window: null }],
  [
    "a window of exports",
    { window: { by: "event", from: "1970-01-01T00:00:01Z", to: "1970-01-01T00:00:02Z" } },
  ],
  ["another source", { source: { kind: "kafka" } }],
])("notes nothing for %s", async (_, change) => {
  const { backfill, contextOf, calls } = startBackfill();
  await backfill.finish(contextOf({ ...WHOLE, ...change }), []);
  expect(calls).toEqual([]);
});

it.each([
  [false, "correct, under rows"],
  [true, "correct, under "],
])("compares and replaces alone (dry run: %s)", async (dryRun, expected) => {
  const { backfill, contextOf, calls } = startBackfill();
  const part = {
    kind: "landing",
    range: { by: "upload", from: 0, to: 1 },
    share: { index: 0, of: 1 },
    events: 1,
  } as const;
  await backfill.runPart(contextOf({ job: { ...WHOLE, dryRun }, part }));
  expect(calls).toEqual([expected]);
});
