import type { PartitionFacts, UploadWindow } from "@conversation-export/domain";
import type { CompactData, JobContext } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import type {
  CleanupStore,
  Comparison,
  FoundKeys,
  PartitionStore,
  WindowStore,
} from "@conversation-export/warehouse";
import { beforeEach, expect, it } from "vitest";
import { createCompaction } from "./compaction.ts";

const HOUR = 3_600_000_000;

const unmerged: PartitionFacts = {
  parts: 9,
  rows: 100,
  bytes: 1_000,
  largestBytes: 500,
  unmerged: true,
  masked: false,
  recompress: false,
  recentInserts: 0,
  recentRows: 0,
  quietSeconds: 600,
  freeBytes: 1e12,
};
const nothing: FoundKeys = { supersededUpdates: 0, movedRecords: 0, movedHandoffs: 0, partitions: [] };

let ledger: UploadWindow[] = [];
let calls: string[] = [];
let found: FoundKeys = nothing;
let facts: Record<string, PartitionFacts> = {};
let comparison: Comparison = { compared: 100, missing: 0, changed: 0 };
let deleted = false;
const notes = new Set<string>();
let merges = true;
let onFind: () => void = () => {};
let onLedger: () => void = () => {};
let written = 100;
/** What is found of a deletion that began before, and of a job that drops parts. */
let deleting = false;
let dropped = false;
/** The lock that is held. */
let lock = "";
/** Breaks off at this call. */
let dieAt = "";

const call = (text: string): void => {
  calls.push(text);
  if (text === dieAt) throw new Error("died");
};

const windows: WindowStore = {
  list: ({ since = 0, withPending = false } = {}) => {
    if (lock === "windows") onLedger();
    return Promise.resolve(
      ledger.filter(({ start, pending }) => start >= since && (!withPending || pending.length > 0)),
    );
  },
  save: (lines) => {
    expect(lock).toBe("windows");
    const keyOf = ({ start, table }: UploadWindow): string => `${start} ${table}`;
    const keys = new Set(lines.map(keyOf));
    ledger = [...ledger.filter((line) => !keys.has(keyOf(line))), ...lines];
    return Promise.resolve();
  },
  count: () => Promise.reject(new Error("not asked for")),
  oldestInsert: () => Promise.reject(new Error("not asked for")),
  markBackfilled: () => Promise.reject(new Error("not asked for")),
  lengths: () => Promise.reject(new Error("not asked for")),
  countStates: () => Promise.reject(new Error("not asked for")),
};

const step = async (text: string): Promise<void> => {
  await Promise.resolve();
  call(text);
};

const cleanup: CleanupStore = {
  begin: () => Promise.resolve(written),
  find: async (_, { starts, chunk, chunks }) => {
    expect(lock).toBe("rows");
    await step(`find ${starts.map((start) => start / HOUR).join()} ${chunk}/${chunks}`);
    onFind();
    return found;
  },
  remove: () => {
    expect(lock).toBe("rows");
    return step("remove");
  },
  forget: () => step("forget"),
};

const partitions: PartitionStore = {
  facts: ({ table, partition }) => Promise.resolve(facts[`${table} ${partition}`] ?? unmerged),
  coldPartitions: () => Promise.resolve([]),
  merge: async ({ table, partition }) => {
    await step(`merge ${table} ${partition}`);
    if (merges) facts[`${table} ${partition}`] = { ...unmerged, parts: 1, rows: 60, unmerged: false };
    return merges;
  },
  note: (run) => {
    notes.add(run);
    return step(`note ${run}`);
  },
  compare: () => Promise.resolve(comparison),
  deletedSince: (_, instant) => Promise.resolve(instant === null ? deleting : deleted),
  notedAt: (run) => Promise.resolve(notes.has(run) ? 50 * HOUR : null),
  forget: (run) => {
    notes.delete(run);
    return Promise.resolve();
  },
};

const line = (hour: number, more: Partial<UploadWindow> = {}): UploadWindow => ({
  start: hour * HOUR,
  table: "messages",
  rows: 10,
  partitions: ["202610"],
  offsets: {},
  state: "closed",
  pending: [],
  reopened: 0,
  openedAt: 0,
  closedAt: 0,
  compactedAt: null,
  backfilledAt: null,
  result: "",
  ...more,
});

const data: CompactData = { range: null, force: false, dryRun: false };
const context = (more: Partial<CompactData>): JobContext<CompactData> => ({
  id: "job",
  data: { ...data, ...more },
  attempt: 1,
  signal: new AbortController().signal,
  log: createLogger({ service: "test", level: "silent" }),
  state: undefined,
  save: () => Promise.resolve(),
  progress: () => Promise.resolve(),
});

const job = createCompaction({
  windows,
  cleanup,
  partitions,
  exclusive: {
    run: async (name, signal, work) => {
      expect(lock).toBe("");
      lock = name;
      try {
        return await work(signal);
      } finally {
        lock = "";
      }
    },
  },
  droppedSince: () => Promise.resolve(dropped),
  windowSeconds: 3_600,
  quietSeconds: 600,
  now: () => 60 * HOUR,
});
const run = (more: Partial<CompactData> = {}) => job.run(context(more));

beforeEach(() => {
  ledger = [line(1), line(2), line(2, { table: "handoffs" }), line(3, { state: "open" })];
  calls = [];
  found = nothing;
  facts = {};
  comparison = { compared: 100, missing: 0, changed: 0 };
  deleted = false;
  deleting = false;
  dropped = false;
  written = 100;
  onLedger = () => {};
  notes.clear();
  merges = true;
  onFind = () => {};
  dieAt = "";
});

it("cleans closed windows, merges each partition once and records it", async () => {
  found = { ...nothing, supersededUpdates: 7 };
  const result = await run();
  expect(calls).toEqual([
    "find 1,2 0/1",
    "remove",
    "forget",
    "note compact messages 202610",
    "merge messages 202610",
    "note compact handoffs 202610",
    "merge handoffs 202610",
  ]);
  expect(result).toMatchObject({
    windows: 2,
    openWindows: 1,
    supersededUpdates: 7,
    partitions: [
      {
        table: "messages",
        outcome: "merged",
        partsBefore: 9,
        partsAfter: 1,
        rowsBefore: 100,
        rowsAfter: 60,
        compared: 100,
      },
      { table: "handoffs", outcome: "merged" },
    ],
  });
  const closed = ledger.filter(({ state }) => state === "compacted");
  expect(closed).toHaveLength(3);
  for (const { pending, compactedAt, result: text } of closed) {
    expect(pending).toEqual([]);
    expect(compactedAt).toBe(60 * HOUR);
    expect(JSON.parse(text)).toMatchObject({ supersededUpdates: 7, partitions: [{ outcome: "merged" }] });
  }
  expect(ledger.filter(({ state }) => state === "open")).toHaveLength(1);
});

it("has nothing to do a second time", async () => {
  await run();
  calls = [];
  expect(await run()).toMatchObject({ windows: 0, partitions: [] });
  expect(calls).toEqual([]);
});

it("does it again when it is forced, and skips what is one part", async () => {
  await run();
  calls = [];
  expect(await run({ force: true })).toMatchObject({
    windows: 2,
    partitions: [{ outcome: "skipped" }, { outcome: "skipped" }],
  });
  expect(calls).toEqual(["find 1,2 0/1", "remove", "forget"]);
});

it("takes only windows that lie wholly in the range", async () => {
  const range = { from: "1970-01-01T00:30:00Z", to: "1970-01-01T02:59:59Z" };
  expect(await run({ range })).toMatchObject({ windows: 1, openWindows: 0 });
  expect(calls[0]).toBe("find 1 0/1");
});

it("says in a dry run what it would do, and does nothing", async () => {
  found = { ...nothing, movedRecords: 3, partitions: [{ table: "messages", partition: "202609" }] };
  const before = ledger;
  expect(await run({ dryRun: true })).toMatchObject({
    dryRun: true,
    windows: 2,
    movedRecords: 3,
    partitions: [
      { table: "messages", partition: "202610", outcome: "would_merge", partsAfter: 9 },
      { table: "handoffs", partition: "202610", outcome: "would_merge" },
      { table: "messages", partition: "202609", outcome: "would_merge" },
    ],
  });
  expect(calls).toEqual(["find 1,2 0/1", "forget"]);
  expect(ledger).toBe(before);
});

it("comes back to a partition that was busy, and merges those in which rows were hidden", async () => {
  facts["messages 202610"] = { ...unmerged, recentInserts: 500, recentRows: 50 };
  found = { ...nothing, movedRecords: 1, partitions: [{ table: "messages", partition: "202609" }] };
  expect(await run()).toMatchObject({
    partitions: [
      { partition: "202609", outcome: "merged" },
      { partition: "202610", outcome: "busy" },
      { table: "handoffs", outcome: "merged" },
    ],
  });
  expect(ledger.filter(({ pending }) => pending.length > 0).map(({ start }) => start / HOUR)).toEqual([1, 2]);
  calls = [];
  facts["messages 202610"] = unmerged;
  expect(await run()).toMatchObject({ windows: 0, partitions: [{ partition: "202610", outcome: "merged" }] });
  expect(calls).toEqual(["note compact messages 202610", "merge messages 202610"]);
  expect(ledger.every(({ pending }) => pending.length === 0)).toBe(true);
});

it("comes back when merges are stopped", async () => {
  merges = false;
  expect(await run()).toMatchObject({ partitions: [{ outcome: "stopped" }, { outcome: "stopped" }] });
  merges = true;
  expect(await run()).toMatchObject({ partitions: [{ outcome: "merged" }, { outcome: "merged" }] });
});

it("leaves a window open into which a row came meanwhile", async () => {
  onFind = () => {
    ledger = ledger.map((each) =>
      each.start === HOUR ? { ...each, state: "open", reopened: 1, rows: 11 } : each,
    );
  };
  await run();
  expect(ledger.find(({ start }) => start === HOUR)).toMatchObject({ state: "open", rows: 11 });
});

it("fails when a merge has changed records, unless others deleted rows meanwhile", async () => {
  comparison = { compared: 100, missing: 1, changed: 2 };
  await expect(run()).rejects.toMatchObject({ code: "compaction_changed_records", retryable: false });
  deleted = true;
  facts = {};
  expect(await run()).toMatchObject({ partitions: [{ outcome: "disturbed" }, { outcome: "disturbed" }] });
});

it.each([
  "find 1,2 0/1",
  "remove",
  "forget",
  "note compact messages 202610",
  "merge messages 202610",
  "merge handoffs 202610",
])("is finished by the next run when it dies at: %s", async (at) => {
  dieAt = at;
  await expect(run()).rejects.toThrow("died");
  dieAt = "";
  await run();
  expect(calls.filter((text) => text === "merge messages 202610").length).toBeGreaterThan(0);
  expect(calls.filter((text) => text === "merge handoffs 202610").length).toBeGreaterThan(0);
  expect(ledger.filter(({ state, pending }) => state === "compacted" && pending.length === 0)).toHaveLength(
    3,
  );
});

it("compares after a merge on which an attempt died", async () => {
  dieAt = "merge messages 202610";
  await expect(run()).rejects.toThrow("died");
  dieAt = "";
  facts["messages 202610"] = { ...unmerged, parts: 1, unmerged: false };
  comparison = { compared: 100, missing: 1, changed: 0 };
  await expect(run()).rejects.toMatchObject({ code: "compaction_changed_records" });
  comparison = { compared: 100, missing: 0, changed: 0 };
  expect(await run()).toMatchObject({ partitions: [{ outcome: "skipped" }, { outcome: "merged" }] });
});

it("waits until a window is closed for all tables", async () => {
  ledger = [line(1), line(1, { table: "handoffs", state: "open" }), line(2)];
  expect(await run()).toMatchObject({ windows: 1, openWindows: 1 });
  expect(calls[0]).toBe("find 2 0/1");
});

it.each(["a deletion", "a job that drops parts"])("tells %s from damage", async (what) => {
  comparison = { compared: 100, missing: 1, changed: 0 };
  if (what === "a deletion") deleted = true;
  else dropped = true;
  expect(await run()).toMatchObject({ partitions: [{ outcome: "disturbed" }, { outcome: "disturbed" }] });
});

it("removes nothing while a deletion that somebody left goes on", async () => {
  deleting = true;
  await expect(run()).rejects.toMatchObject({ code: "deletion_under_way", retryable: true });
  expect(calls).toEqual(["forget"]);
});

it("compacts a closed window that was backfilled meanwhile, once", async () => {
  ledger = [line(1, { state: "backfilled", backfilledAt: HOUR })];
  expect(await run()).toMatchObject({ windows: 1 });
  expect(ledger).toMatchObject([{ state: "backfilled", compactedAt: 60 * HOUR, pending: [] }]);
  expect(await run()).toMatchObject({ windows: 0 });
});

it("changes lines as they are when their turn has come", async () => {
  onLedger = () => {
    ledger = ledger.map((each) => ({ ...each, rows: 77 }));
  };
  await run();
  expect(ledger.map(({ rows }) => rows)).toEqual([77, 77, 77, 77]);
});

it("goes through many records in shares", async () => {
  ledger = [line(1)];
  written = 2_500_000;
  found = { ...nothing, supersededUpdates: 2 };
  expect(await run()).toMatchObject({ supersededUpdates: 6 });
  expect(calls.slice(0, 6)).toEqual(["find 1 0/3", "remove", "find 1 1/3", "remove", "find 1 2/3", "remove"]);
});
