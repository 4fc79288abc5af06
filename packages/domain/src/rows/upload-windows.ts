import type { Micros } from "../event/timestamp.ts";
import { READABLE_FIRST, type RecordTable } from "../kinds/record-kinds.ts";

export const WINDOW_TABLES: readonly RecordTable[] = READABLE_FIRST.map(({ name }) => name);
export type WindowTable = RecordTable;

/** `backfilled`: most records now carry a later instant of upload. */
export const WINDOW_STATES = ["open", "closed", "compacted", "backfilled"] as const;
export type WindowState = (typeof WINDOW_STATES)[number];

export type WindowCount = {
  readonly start: Micros;
  readonly table: WindowTable;
  readonly rows: number;
  readonly partitions: readonly string[];
  readonly offsets: Readonly<Record<string, number>>;
};

export type FoundCount = WindowCount & {
  /** Counted with all later uploads; else `rows` depends on where the count began. */
  readonly isByItself: boolean;
};

export type UploadWindow = WindowCount & {
  readonly state: WindowState;
  readonly reopened: number;
  readonly openedAt: Micros;
  readonly closedAt: Micros | null;
  readonly compactedAt: Micros | null;
  readonly backfilledAt: Micros | null;
  readonly result: string;
};

export const waitsForCompaction = ({
  state,
  compactedAt,
}: Pick<UploadWindow, "state" | "compactedAt">): boolean =>
  state === "closed" || (state === "backfilled" && compactedAt === null);

export type WindowChanges = {
  readonly lines: readonly UploadWindow[];
  readonly opened: number;
  readonly closed: number;
  readonly reopened: number;
};

const keyOf = ({ start, table }: Pick<WindowCount, "start" | "table">): string => `${start} ${table}`;

const highest = (a: WindowCount["offsets"], b: WindowCount["offsets"]): Record<string, number> => {
  const merged: Record<string, number> = { ...a };
  for (const [partition, offset] of Object.entries(b))
    merged[partition] = Math.max(merged[partition] ?? 0, offset);
  return merged;
};

/** A higher offset or more rows mean late rows: exports only take rows out of a window. */
const hasLateRows = (
  stored: UploadWindow,
  count: Pick<FoundCount, "rows" | "offsets" | "isByItself">,
): boolean =>
  (count.isByItself && count.rows > stored.rows) ||
  Object.entries(count.offsets).some(([partition, offset]) => offset > (stored.offsets[partition] ?? -1));

const isSame = (a: UploadWindow, b: UploadWindow): boolean =>
  a.state === b.state &&
  a.rows === b.rows &&
  a.partitions.join() === b.partitions.join() &&
  Object.entries(b.offsets).every(([partition, offset]) => a.offsets[partition] === offset);

/** Closes windows after `grace` unless a batch in flight (`oldestUpload`) may reach them. All in µs. */
export function updateWindows(input: {
  readonly stored: readonly UploadWindow[];
  readonly counted: readonly FoundCount[];
  readonly now: Micros;
  readonly length: Micros;
  readonly grace: Micros;
  readonly oldestUpload: Micros | null;
}): WindowChanges {
  const { now, length, grace, oldestUpload } = input;
  const counts = new Map(input.counted.map((count) => [keyOf(count), count]));
  const known = new Set(input.stored.map(keyOf));
  const lines: UploadWindow[] = [];
  let closed = 0;
  let reopened = 0;

  const mayClose = (start: Micros): boolean =>
    now >= start + length + grace && (oldestUpload === null || oldestUpload >= start + length);

  for (const stored of input.stored) {
    const count = counts.get(keyOf(stored)) ?? { rows: 0, partitions: [], offsets: {}, isByItself: true };
    const { rows, partitions } = count;
    const line = { ...stored, rows, partitions, offsets: highest(stored.offsets, count.offsets) };
    const isLate = hasLateRows(stored, count);
    if (stored.state === "open") {
      if (!isLate && mayClose(stored.start)) {
        closed += 1;
        lines.push({ ...line, state: "closed", closedAt: now });
      } else if (!isSame(stored, line)) lines.push(line);
    } else if (isLate) {
      reopened += 1;
      // The late rows were not compacted or backfilled.
      const undone = { closedAt: null, compactedAt: null, backfilledAt: null };
      lines.push({ ...line, ...undone, state: "open", reopened: stored.reopened + 1 });
    } else if (!isSame(stored, line)) lines.push(line);
  }

  const fresh = input.counted.filter((count) => !known.has(keyOf(count)));
  for (const { isByItself: _, ...count } of fresh) {
    const isClosed = mayClose(count.start);
    if (isClosed) closed += 1;
    lines.push({
      ...count,
      state: isClosed ? "closed" : "open",
      reopened: 0,
      openedAt: now,
      closedAt: isClosed ? now : null,
      compactedAt: null,
      backfilledAt: null,
      result: "",
    });
  }
  return { lines, opened: fresh.length, closed, reopened };
}
