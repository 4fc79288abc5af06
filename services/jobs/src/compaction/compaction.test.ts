import type { UploadWindow } from "@conversation-export/domain";
import type { CompactData } from "@conversation-export/queue";
import type { SupersededEntries, WindowStore } from "@conversation-export/warehouse";
import { beforeEach, describe, expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { createCompaction } from "./compaction.ts";

const HOUR = 3_600_000_000;
const MINUTE = HOUR / 60;
const MILLION = 1_000_000;

let ledger: UploadWindow[] = [];
let calls: string[] = [];
let written = 0;
let deleting = false;
let now = 0;
let lock = "";
let onRemove: () => void = () => {};

const windows: Pick<WindowStore, "list" | "save"> = {
  list: ({ since = 0, to = Number.MAX_SAFE_INTEGER, states } = {}) =>
    Promise.resolve(
      ledger.filter(
        ({ start, state }) =>
          start >= since && start < to && (states === undefined || states.includes(state)),
      ),
    ),
  save: (lines) => {
    expect(lock).toBe("windows");
    const keyOf = ({ start, table }: UploadWindow): string => `${start} ${table}`;
    const keys = new Set(lines.map(keyOf));
    ledger = [...ledger.filter((line) => !keys.has(keyOf(line))), ...lines];
    return Promise.resolve();
  },
};

const reported = (what: string, { starts, chunk, chunks }: Parameters<SupersededEntries["count"]>[0]) =>
  calls.push(`${what} ${starts.map((start) => start / HOUR).join()} ${chunk}/${chunks}`);

const entries: SupersededEntries = {
  countWritten: () => Promise.resolve(written),
  count: (share) => {
    reported("count", share);
    return Promise.resolve(3);
  },
  remove: (_, share) => {
    expect(lock).toBe("rows");
    reported("remove", share);
    onRemove();
    return Promise.resolve(3);
  },
  deletionRuns: () => Promise.resolve(deleting),
  sweep: () => Promise.reject(new Error("not asked for")),
  forgetDead: async (alive) => {
    calls.push(`forget all but ${[...(await alive())].join()}`);
  },
};

const line = (hour: number, more: Partial<UploadWindow> = {}): UploadWindow => ({
  start: hour * HOUR,
  table: "conversations",
  rows: 10,
  partitions: ["202610"],
  offsets: {},
  state: "closed",
  reopened: 0,
  openedAt: 0,
  closedAt: 0,
  compactedAt: null,
  backfilledAt: null,
  result: "",
  ...more,
});

const run = (more: Partial<CompactData> = {}) => {
  const context = jobContext<CompactData>({ range: null, force: false, dryRun: false, ...more });
  return createCompaction({
    windows,
    entries,
    alive: () => Promise.resolve(new Set(["own"])),
    exclusive: {
      run: async (name, signal, work) => {
        expect(lock, "locks are not nested").toBe("");
        lock = name;
        try {
          return await work(signal);
        } finally {
          lock = "";
        }
      },
    },
    windowSeconds: 3_600,
    now: () => now,
  }).run(context);
};

beforeEach(() => {
  ledger = [line(10), line(10, { table: "messages" })];
  calls = [];
  written = 100;
  deleting = false;
  now = 20 * HOUR;
  onRemove = () => {};
});

const statesOf = (): string[] => ledger.map(({ start, state }) => `${start / HOUR} ${state}`).sort();
const done = (): string[] => calls.filter((call) => !call.startsWith("forget"));

describe("a closed window", () => {
  it("is compacted once", async () => {
    expect(await run()).toEqual({
      dryRun: false,
      windows: 1,
      waitingWindows: 0,
      openWindows: 0,
      supersededUpdates: 3,
    });
    expect(calls).toEqual(["forget all but own", "remove 10 0/1"]);
    expect(ledger).toMatchObject([
      { state: "compacted", compactedAt: now, result: '{"supersededUpdates":3}' },
      { state: "compacted" },
    ]);
    expect(await run()).toMatchObject({ windows: 0, supersededUpdates: 0 });
    expect(await run({ force: true })).toMatchObject({ windows: 1 });
  });

  it("stays as it is in a dry run, and while rows of conversations are being deleted", async () => {
    expect(await run({ dryRun: true })).toMatchObject({ windows: 1, supersededUpdates: 3 });
    expect(done()).toEqual(["count 10 0/1"]);
    deleting = true;
    await expect(run()).rejects.toMatchObject({ code: "deletion_under_way", retryable: true });
    expect(statesOf()).toEqual(["10 closed", "10 closed"]);
  });

  it("is not compacted while it is open for another table, nor marked when it opens meanwhile", async () => {
    ledger = [line(10), line(10, { table: "messages", state: "open" })];
    expect(await run()).toMatchObject({ windows: 0, openWindows: 1 });
    ledger = [line(10), line(11)];
    onRemove = () => (ledger = [line(10, { state: "open", reopened: 1 }), line(11)]);
    expect(await run()).toMatchObject({ windows: 2 });
    expect(statesOf()).toEqual(["10 open", "11 compacted"]);
  });

  it("that was backfilled before stays backfilled", async () => {
    ledger = [line(10, { state: "backfilled", backfilledAt: 1 })];
    expect(await run()).toMatchObject({ windows: 1 });
    expect(ledger).toMatchObject([{ state: "backfilled", compactedAt: now }]);
    expect(await run()).toMatchObject({ windows: 0 });
  });
});

describe("many windows", () => {
  it("go in groups of about a million conversations, oldest first, and large ones in shares", async () => {
    ledger = [13, 12, 11, 10].map((hour) => line(hour, { rows: 0.6 * MILLION })).toReversed();
    written = 2.5 * MILLION;
    expect(await run()).toMatchObject({ windows: 4 });
    const shares = (windowsOf: string) => [0, 1, 2].map((chunk) => `remove ${windowsOf} ${chunk}/3`);
    expect(done()).toEqual([...shares("10,11"), ...shares("12,13")]);
  });

  it("are left to the next run when ten minutes are over, oldest first", async () => {
    ledger = [10, 11, 12, 13].map((hour) => line(hour, { rows: MILLION }));
    onRemove = () => (now += 10 * MINUTE);
    expect(await run()).toMatchObject({ windows: 1, waitingWindows: 3 });
    onRemove = () => (now += 10 * MINUTE - 1);
    expect(await run()).toMatchObject({ windows: 2, waitingWindows: 1 });
    expect(done()).toEqual(["remove 10 0/1", "remove 11 0/1", "remove 12 0/1"]);
  });

  it.each<[string, Partial<CompactData>]>([
    ["by a range", { range: { from: "1970-01-01T00:00:00Z", to: "1970-01-02T00:00:00Z" } }],
    ["by force", { force: true }],
  ])("are compacted to the end when they are asked for %s", async (_, asked) => {
    ledger = [10, 11, 12].map((hour) => line(hour, { rows: MILLION }));
    onRemove = () => (now += HOUR);
    expect(await run(asked)).toMatchObject({ windows: 3, waitingWindows: 0 });
  });

  it("are those that lie in the range", async () => {
    ledger = [10, 11, 12].map((hour) => line(hour));
    const range = { from: "1970-01-01T11:00:00Z", to: "1970-01-01T12:30:00Z" };
    expect(await run({ range })).toMatchObject({ windows: 1 });
    expect(statesOf()).toEqual(["10 closed", "11 compacted", "12 closed"]);
  });
});
