import { formatTimestampZ } from "@conversation-export/domain";
import {
  backfillJob,
  type BackfillCounts,
  type BackfillData,
  type JobContext,
} from "@conversation-export/queue";
import { expect, it } from "vitest";
import { emptyCounts } from "./backfill-counts.ts";
import { createBackfill } from "./backfill.ts";
import type { LandingBackfill } from "./landing-backfill.ts";
import { jobContext } from "../job-context.fixture.ts";
import type { SourceEvent } from "../sources/event-source.ts";

const unused = (): never => {
  throw new Error("not asked for");
};

const EVENT = { type: "message.exported", message: {} } as unknown as SourceEvent;
const countsOf = (read: number): BackfillCounts => {
  const counts = emptyCounts();
  counts.events.read = read;
  return counts;
};

const startBackfill = (uncovered: Awaited<ReturnType<LandingBackfill["uncovered"]>> = null) => {
  const calls: string[] = [];
  let held = "";
  const backfill = createBackfill({
    fromLanding: {
      split: unused,
      runPart: async () => {
        calls.push("run part");
        return countsOf(100);
      },
      uncovered: () => Promise.resolve(uncovered),
      forget: async () => void calls.push("forget"),
      sweep: unused,
      finish: (_, { run }) => {
        calls.push(`finish ${run}`);
        const counts = emptyCounts();
        counts.rows.deleted.messages = 2;
        return Promise.resolve(counts);
      },
    },
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
    sourceOf: () => ({
      parts: unused,
      async *read() {
        for (const size of [30, 20]) {
          calls.push("read batch");
          yield { events: Array.from({ length: size }, (): SourceEvent => EVENT), problems: [] };
        }
      },
    }),
    events: {
      add: async ({ events }) => {
        calls.push("add batch");
        return countsOf(events.length);
      },
    },
    connected: async () => {},
    throttle: {
      untilLagIs: async (maxLag) => void calls.push(`wait for a lag of ${maxLag}`),
      pace: async (events, _, rate) => void calls.push(`${events} events at ${rate}`),
    },
    now: () => 7,
  });
  const contextOf = <D>(data: D) =>
    jobContext<D, BackfillCounts>(data, {
      id: "job-part-0",
      save: async (state) => void calls.push(`save ${state.rows.deleted.messages}`),
    });
  return { backfill, contextOf, calls };
};

const WHOLE = backfillJob.data.parse({
  source: { kind: "landing" },
  window: { by: "upload", from: "1970-01-01T00:00:01Z", to: "1970-01-01T00:00:02Z" },
});

it("notes the windows of which all records were computed anew", async () => {
  const { backfill, contextOf, calls } = startBackfill();
  await backfill.finish(contextOf(WHOLE), []);
  expect(calls).toEqual(["mark 1000000-2000000 at 7000, under windows"]);
});

it.each([
  [1_300_000, []],
  [600_000, ["mark 1000000-2000000 at 7000, under windows"]],
  [2_000_000, []],
])("says what landing does not hold before %d µs, and notes windows behind that alone", async (before, noted) => {
  const { backfill, contextOf, calls } = startBackfill({ before, records: 3 });
  const { uncovered } = await backfill.finish(contextOf(WHOLE), []);
  expect(uncovered).toEqual({ before: formatTimestampZ(before), records: 3 });
  expect(calls).toEqual(noted);
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

it("ends the run of its parts once and adds up what that deleted", async () => {
  const { backfill, contextOf, calls } = startBackfill();
  const result = { ...emptyCounts(), deletableSince: 5_000_000, run: { run: "backfill job/1", readAt: 0 } };
  const done = await backfill.finish(contextOf({ ...WHOLE, clientId: "acme" }), [result, result]);
  expect(calls).toEqual(["finish backfill job/1", "save 2", "forget"]);
  expect(done).toMatchObject({ parts: 2, deletableSince: "1970-01-01T00:00:05.000000Z" });
  expect(done.rows.deleted.messages).toBe(2);
  const context = { ...contextOf({ ...WHOLE, clientId: "acme" }), state: done };
  expect((await backfill.finish(context, [result, result])).rows.deleted.messages).toBe(2);
  expect(calls.slice(3)).toEqual(["forget"]);
});

const partContext = <D>(context: JobContext<D, BackfillCounts>): JobContext<D> => ({
  ...context,
  state: undefined,
  save: unused,
});

it("begins no part, and adds no batch of another source, before ingest has caught up, and keeps its rate", async () => {
  const limits = { maxLag: 70, rowsPerSecond: 200 };
  const landing = startBackfill();
  const part = {
    kind: "landing",
    run: "backfill job/1",
    coverage: null,
    stableUpTo: 0,
    readAt: 0,
    from: "0",
    to: "1",
  } as const;
  await landing.backfill.runPart(partContext(landing.contextOf({ job: { ...WHOLE, ...limits }, part })));
  expect(landing.calls).toEqual(["wait for a lag of 70", "run part", "100 events at 200"]);
  const kafka = startBackfill();
  const job: BackfillData = { ...WHOLE, ...limits, source: { kind: "kafka" } };
  await kafka.backfill.runPart(
    partContext(kafka.contextOf({ job, part: { kind: "files" as const, files: [] } })),
  );
  const batch = (size: number) => [
    "read batch",
    "wait for a lag of 70",
    "add batch",
    `${size} events at 200`,
  ];
  expect(kafka.calls).toEqual([...batch(30), ...batch(20)]);
});
