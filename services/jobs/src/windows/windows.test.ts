import type { FoundCount, UploadWindow } from "@conversation-export/domain";
import type { WindowsData } from "@conversation-export/queue";
import type { WindowStore } from "@conversation-export/warehouse";
import { beforeEach, describe, expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { createWindows } from "./windows.ts";

const SECOND = 1_000_000;
const HOUR = 3_600 * SECOND;

let ledger: UploadWindow[] = [];
let counts: FoundCount[] = [];
let countedSince: number[] = [];
let stableAt: number[] = [];
let until = 0;
let now = 0;
let lock = "";

const store: WindowStore = {
  list: ({ since } = {}) => {
    if (since === undefined) throw new Error("the whole ledger is read");
    expect(lock).toBe("windows");
    return Promise.resolve(ledger.filter(({ start }) => start >= since));
  },
  edges: () => {
    expect(lock).toBe("windows");
    const starts = ledger.map(({ start }) => start);
    const open = ledger.find(({ state }) => state === "open")?.start ?? null;
    return Promise.resolve({ last: starts.length === 0 ? null : Math.max(...starts), open });
  },
  count: (since) => {
    countedSince.push(since);
    return Promise.resolve(counts.filter(({ start }) => start >= since));
  },
  save: (lines) => {
    expect(lock).toBe("windows");
    const isNew = (line: UploadWindow): boolean => lines.every(({ start }) => start !== line.start);
    ledger = [...ledger.filter(isNew), ...lines].toSorted((a, b) => a.start - b.start);
    return Promise.resolve();
  },
  markBackfilled: () => Promise.reject(new Error("not asked for")),
  lengths: () => Promise.reject(new Error("not asked for")),
  countStates: () => Promise.reject(new Error("not asked for")),
};

const run = (data: WindowsData = { since: null }) => job.run(jobContext(data));
const job = createWindows({
  store,
  stable: {
    load: () => {
      stableAt.push(countedSince.length);
      return Promise.resolve({ until, watermarks: {} });
    },
  },
  exclusive: {
    run: async (name, signal, work) => {
      lock = name;
      try {
        return await work(signal);
      } finally {
        lock = "";
      }
    },
  },
  windowSeconds: 3_600,
  graceSeconds: 120,
  lookback: 2,
  now: () => now,
});

const countAt = (start: number): FoundCount => ({
  start,
  table: "messages",
  rows: 1,
  partitions: ["202610"],
  offsets: { 0: 1 },
  isByItself: true,
});

beforeEach(() => {
  ledger = [];
  counts = [countAt(10 * HOUR), countAt(14 * HOUR)];
  countedSince = [];
  stableAt = [];
  now = 14.5 * HOUR;
  until = now - 3 * SECOND;
});

describe("what is counted", () => {
  it("is everything at first, then what is open and the last windows that have closed", async () => {
    expect(await run()).toEqual({ counted: 2, opened: 2, closed: 1, reopened: 0 });
    expect(await run()).toEqual({ counted: 1, opened: 0, closed: 0, reopened: 0 });
    now = 20 * HOUR;
    until = now;
    await run();
    await run();
    expect(countedSince).toEqual([0, 12 * HOUR, 12 * HOUR, 12 * HOUR]);
  });

  it("starts at the window in which a given instant lies", async () => {
    await run({ since: "1970-01-01T10:59:59.999999Z" });
    expect(countedSince).toEqual([10 * HOUR]);
  });
});

describe("a window that has ended", () => {
  it.each([
    ["rows of it may still come", 11 * HOUR - 1],
    ["nothing is known to be stable", 0],
  ])("stays open while %s", async (_, stable) => {
    until = stable;
    expect(await run()).toMatchObject({ opened: 2, closed: 0 });
  });

  it("closes once everything in it is stable, which is asked before its rows are counted", async () => {
    until = 11 * HOUR;
    expect(await run()).toMatchObject({ opened: 2, closed: 1 });
    expect(stableAt).toEqual([0]);
  });
});
