import { describe, expect, it } from "vitest";
import {
  type FoundCount,
  type UploadWindow,
  updateWindows,
  waitsForCompaction,
  type WindowCount,
} from "./upload-windows.ts";

const SECOND = 1_000_000;
const LENGTH = 3_600 * SECOND;
const START = 100 * LENGTH;
const END = START + LENGTH;
const GRACE = 120 * SECOND;

const counted: WindowCount = {
  start: START,
  table: "messages",
  rows: 10,
  partitions: ["202610"],
  offsets: { 0: 50, 3: 7 },
};

const stored = (more: Partial<UploadWindow> = {}): UploadWindow => ({
  ...counted,
  state: "open",
  reopened: 0,
  openedAt: START,
  closedAt: null,
  compactedAt: null,
  backfilledAt: null,
  result: "",
  ...more,
});

const update = (
  before: readonly UploadWindow[],
  counts: readonly (WindowCount & Partial<FoundCount>)[],
  more: { now?: number; oldestUpload?: number | null } = {},
) =>
  updateWindows({
    stored: before,
    counted: counts.map((count) => ({ isByItself: true, ...count })),
    now: more.now ?? END + GRACE,
    length: LENGTH,
    grace: GRACE,
    oldestUpload: more.oldestUpload ?? null,
  });

describe("a window that is counted for the first time", () => {
  it("is open while it may still get rows", () => {
    expect(update([], [counted], { now: END + GRACE - 1 })).toMatchObject({
      opened: 1,
      closed: 0,
      lines: [{ ...counted, state: "open", closedAt: null }],
    });
  });

  it("is closed at once when it ended long ago", () => {
    expect(update([], [counted])).toMatchObject({
      opened: 1,
      closed: 1,
      lines: [{ state: "closed", closedAt: END + GRACE }],
    });
  });
});

describe("an open window", () => {
  it("takes over what was counted", () => {
    const count = { ...counted, rows: 12, offsets: { 0: 60 } };
    expect(update([stored()], [count], { now: END })).toMatchObject({
      closed: 0,
      lines: [{ state: "open", rows: 12, offsets: { 0: 60, 3: 7 } }],
    });
  });

  it("closes when its time of grace is over and nothing is on its way", () => {
    const { lines, closed } = update([stored()], [counted]);
    expect(closed).toBe(1);
    expect(lines).toEqual([stored({ state: "closed", closedAt: END + GRACE })]);
  });

  it.each([
    ["its time of grace is not over", { now: END + GRACE - 1 }],
    ["a batch with an instant in it is in flight", { oldestUpload: END - 1 }],
    ["an older batch is in flight", { oldestUpload: START - LENGTH }],
  ])("stays open while %s", (_, more) => {
    expect(update([stored()], [counted], more)).toEqual({ lines: [], opened: 0, closed: 0, reopened: 0 });
  });

  it("closes beside a batch of the next window", () => {
    expect(update([stored()], [counted], { oldestUpload: END })).toMatchObject({ closed: 1 });
  });

  it("stays open once more when it has grown since it was last counted", () => {
    expect(update([stored()], [{ ...counted, rows: 11 }])).toMatchObject({
      closed: 0,
      lines: [{ state: "open", rows: 11 }],
    });
  });

  it("closes with the rows that newer exports have left it", () => {
    expect(update([stored()], [])).toMatchObject({
      closed: 1,
      lines: [{ rows: 0, offsets: { 0: 50, 3: 7 } }],
    });
  });
});

describe.each(["closed", "compacted", "backfilled"] as const)("a window that is %s", (state) => {
  const done = {
    closed: {},
    compacted: { compactedAt: END },
    backfilled: { backfilledAt: END, compactedAt: END },
  };
  const line = stored({ state, closedAt: END + GRACE, ...done[state] });

  it("waits for its compaction when it has had none since it closed", () => {
    expect(waitsForCompaction(line)).toBe(state === "closed");
    const again = update(update([line], [{ ...counted, rows: 11 }]).lines, [{ ...counted, rows: 11 }]);
    expect(again.lines.map(waitsForCompaction)).toEqual([true]);
    expect(waitsForCompaction({ ...line, compactedAt: null })).toBe(state !== "compacted");
    expect(waitsForCompaction(stored())).toBe(false);
  });

  it("is left alone when nothing has changed", () => {
    expect(update([line], [counted]).lines).toEqual([]);
  });

  it("shrinks when newer exports take its rows away", () => {
    const { lines, reopened } = update([line], [{ ...counted, rows: 4, offsets: { 3: 2 } }]);
    expect(reopened).toBe(0);
    expect(lines).toEqual([{ ...line, rows: 4 }]);
  });

  it.each([
    ["one row more", { ...counted, rows: 11 }],
    ["a later place on the bus", { ...counted, offsets: { 0: 51 } }],
    ["a place on another partition of the bus", { ...counted, offsets: { 9: 0 } }],
  ])("is opened again by %s", (_, count) => {
    expect(update([line], [count])).toMatchObject({
      reopened: 1,
      closed: 0,
      lines: [
        {
          state: "open",
          closedAt: null,
          compactedAt: null,
          backfilledAt: null,
          reopened: 1,
        },
      ],
    });
  });

  it("is not opened again by more rows where the count began later, but by a later place", () => {
    const more = { ...counted, rows: 11, isByItself: false };
    expect(update([line], [more])).toMatchObject({ reopened: 0, lines: [{ state, rows: 11 }] });
    expect(update([line], [{ ...more, offsets: { 0: 51 } }])).toMatchObject({ reopened: 1 });
  });

  it("is opened again by a late row after it had shrunk", () => {
    const shrunk = update([line], [{ ...counted, rows: 4 }]).lines;
    expect(update(shrunk, [{ ...counted, rows: 5 }])).toMatchObject({ reopened: 1 });
  });
});

it("tells tables and windows apart", () => {
  const other = { ...counted, table: "handoffs" as const };
  const next = { ...counted, start: END };
  expect(update([stored()], [counted, other, next])).toMatchObject({ opened: 2, closed: 2 });
});
