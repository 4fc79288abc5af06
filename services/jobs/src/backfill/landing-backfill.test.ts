import { END_OF_TIME } from "@conversation-export/domain";
import { backfillJob } from "@conversation-export/queue";
import { expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { emptyCounts } from "./backfill-counts.ts";
import { createLandingBackfill } from "./landing-backfill.ts";
import type { LandingPart } from "./landing-parts.ts";

const DAY_MS = 86_400_000;
/** µs */
const CLICKHOUSE_TIME = 1_000_000;

const startBackfill = (given: { stableUpTo?: number; isOver?: boolean; setBackMs?: number } = {}) => {
  const kept = new Map<string, { isOld: boolean }>();
  const clock = { ms: 1_000, elapsed: 0 };
  let failure: Error | undefined;
  let reading = (): unknown => undefined;
  const unused = (): never => {
    throw new Error("not asked for");
  };
  const backfill = createLandingBackfill({
    runs: {
      count: () => Promise.resolve(10),
      countOlder: unused,
      begin: async (run) => {
        kept.set(run, { isOld: false });
        if (failure !== undefined) throw failure;
      },
      countMarked: () => Promise.resolve(0),
      beginMarked: unused,
      exists: async (run) => kept.has(run),
      stored: unused,
      landed: unused,
      mark: () => Promise.resolve(),
      list: async () => [...kept].map(([run, { isOld }]) => ({ run, isOld })),
      forget: async (run) => void kept.delete(run),
    },
    wrong: {
      untilNoDeletion: () => Promise.resolve(),
      begin: unused,
      note: unused,
      erase: unused,
      end: unused,
      endOthers: () => Promise.resolve(),
      sweep: () => Promise.resolve(),
    },
    landing: { coverage: () => Promise.resolve({ since: 0, asOf: CLICKHOUSE_TIME }) },
    stable: {
      load: async () => {
        clock.elapsed += 40_000;
        clock.ms += given.setBackMs === undefined ? 40_000 : -given.setBackMs;
        return { until: given.stableUpTo ?? END_OF_TIME, watermarks: {} };
      },
    },
    correct: async () => {
      reading();
      return emptyCounts();
    },
    exclusive: { run: (_, signal, work) => work(signal) },
    isOver: async () => given.isOver ?? false,
    alive: async () => new Set(["here"]),
    typeOf: () => undefined,
    maxTimeAheadMs: 0,
    now: () => clock.ms,
    elapsed: () => clock.elapsed,
    partEvents: 100,
  });
  const fail = (error: Error): void => {
    failure = error;
  };
  const whileReading = (happens: () => unknown): void => {
    reading = happens;
  };
  return { backfill, kept, clock, fail, whileReading };
};

const CONTEXT = jobContext(backfillJob.data.parse({ source: { kind: "landing" } }));
const firstOf = (parts: readonly LandingPart[]): LandingPart => {
  const [part] = parts;
  if (part === undefined) throw new Error("no part");
  return part;
};

it("does not begin before what has landed is stored", async () => {
  const { backfill, kept } = startBackfill({ stableUpTo: CLICKHOUSE_TIME - 1 });
  const unsettled = { code: "ingest_unsettled", retryable: true };
  await expect(backfill.split(CONTEXT)).rejects.toMatchObject(unsettled);
  expect(kept.size).toBe(0);
});

it("waits no longer when its clock is set back meanwhile", async () => {
  const { backfill } = startBackfill({ stableUpTo: CLICKHOUSE_TIME - 1, setBackMs: 3_600_000 });
  await expect(backfill.split(CONTEXT)).rejects.toMatchObject({ code: "ingest_unsettled" });
});

it("goes by the clock of ClickHouse when that of the process is ahead", async () => {
  const { backfill, clock } = startBackfill({ stableUpTo: CLICKHOUSE_TIME });
  clock.ms += 360_000;
  expect(await backfill.split(CONTEXT)).toHaveLength(1);
});

it("judges no record by rows that were read more than a day ago", async () => {
  const { backfill, clock } = startBackfill();
  const part = firstOf(await backfill.split(CONTEXT));
  clock.ms = part.readAt + DAY_MS;
  await backfill.runPart(CONTEXT, part, false);
  clock.ms += 1;
  const gone = { code: "backfill_rows_gone" };
  await expect(backfill.runPart(CONTEXT, part, false)).rejects.toMatchObject(gone);
  await expect(backfill.finish(CONTEXT, part, false)).rejects.toMatchObject(gone);
});

it("is not completed when others have removed what it has read", async () => {
  const { backfill, kept, whileReading } = startBackfill();
  const part = firstOf(await backfill.split(CONTEXT));
  const gone = { code: "backfill_rows_gone", retryable: false };
  whileReading(() => kept.delete(part.run));
  await expect(backfill.runPart(CONTEXT, part, true)).rejects.toMatchObject(gone);
  await expect(backfill.finish(CONTEXT, part, false)).rejects.toMatchObject(gone);
});

it("may repeat its last step until it forgets what it has read", async () => {
  const { backfill, kept } = startBackfill();
  const part = firstOf(await backfill.split(CONTEXT));
  await backfill.finish(CONTEXT, part, false);
  await backfill.finish(CONTEXT, part, false);
  await backfill.forget(CONTEXT);
  expect(kept.size).toBe(0);
});

it("keeps what the last attempt to begin has read, and of one that failed nothing", async () => {
  const { backfill, kept, fail } = startBackfill();
  const first = firstOf(await backfill.split(CONTEXT)).run;
  const other = firstOf(await backfill.split({ ...CONTEXT, id: "other" })).run;
  const second = firstOf(await backfill.split(CONTEXT)).run;
  expect(second).not.toBe(first);
  expect([...kept.keys()]).toEqual([other, second]);
  fail(new Error("ClickHouse is away"));
  await expect(backfill.split(CONTEXT)).rejects.toThrow("ClickHouse is away");
  expect([...kept.keys()]).toEqual([other]);
});

it("removes what a job left that is over, or that is old", async () => {
  const gone = startBackfill({ isOver: true });
  gone.kept.set("backfill job/0f0e0d0c-0b0a-4900-8807-060504030201", { isOld: false });
  await gone.backfill.sweep();
  expect(gone.kept.size).toBe(0);
  const failed = startBackfill();
  failed.kept.set("backfill job/0f0e0d0c-0b0a-4900-8807-060504030201", { isOld: true });
  failed.kept.set("backfill job/1f0e0d0c-0b0a-4900-8807-060504030201", { isOld: false });
  await failed.backfill.sweep();
  expect([...failed.kept.keys()]).toEqual(["backfill job/1f0e0d0c-0b0a-4900-8807-060504030201"]);
});
