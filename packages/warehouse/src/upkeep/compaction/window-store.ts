import {
  END_OF_TIME,
  type FoundCount,
  type Micros,
  MICROS_IN_SECOND,
  type UploadWindow,
  WINDOW_TABLES,
  type WindowCount,
  type WindowState,
  type WindowTable,
} from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import type { Session } from "../../session/session.ts";

/** `since` inclusive, `to` exclusive. */
export type WindowFilter = {
  readonly since?: Micros;
  readonly to?: Micros;
  readonly states?: readonly WindowState[];
};

/** The ledger of upload windows. @throws WarehouseError from every method */
export type WindowStore = {
  list(filter?: WindowFilter): Promise<readonly UploadWindow[]>;
  edges(): Promise<{ readonly last: Micros | null; readonly open: Micros | null }>;
  /** `since`: start of a window. Late rows that an earlier window supersedes count until merged. */
  count(since: Micros, signal?: AbortSignal): Promise<readonly FoundCount[]>;
  /** The last save wins: only one process at a time may change the ledger. */
  save(lines: readonly UploadWindow[]): Promise<void>;
  /** Closed windows inside the range; compaction still handles them. */
  markBackfilled(range: { readonly from: Micros; readonly to: Micros }, at: Micros): Promise<void>;
  /** Seconds. */
  lengths(): Promise<readonly number[]>;
  countStates(): Promise<Readonly<Record<WindowState, number>>>;
};

type StoredWindow = {
  start: number;
  table: WindowTable;
  state: WindowState;
  rows: number;
  partitions: string[];
  offsets: Record<string, number>;
  reopened: number;
  opened_at: number;
  closed_at: number | null;
  compacted_at: number | null;
  backfilled_at: number | null;
  result: string;
};

const toMicros = (seconds: number | null): Micros | null =>
  seconds === null ? null : seconds * MICROS_IN_SECOND;
const toSeconds = (instant: Micros | null): number | null =>
  instant === null ? null : Math.floor(instant / MICROS_IN_SECOND);

const toWindow = (row: StoredWindow): UploadWindow => ({
  start: row.start * MICROS_IN_SECOND,
  table: row.table,
  state: row.state,
  rows: row.rows,
  partitions: row.partitions,
  offsets: row.offsets,
  reopened: row.reopened,
  openedAt: row.opened_at * MICROS_IN_SECOND,
  closedAt: toMicros(row.closed_at),
  compactedAt: toMicros(row.compacted_at),
  backfilledAt: toMicros(row.backfilled_at),
  result: row.result,
});

const LIST = `SELECT toUnixTimestamp(window_start) AS start, table, state, rows, partitions, offsets, reopened,
    toUnixTimestamp(opened_at) AS opened_at, toUnixTimestamp(closed_at) AS closed_at,
    toUnixTimestamp(compacted_at) AS compacted_at, toUnixTimestamp(backfilled_at) AS backfilled_at, result
  FROM (SELECT * FROM upload_windows FINAL WHERE seconds = {seconds:UInt32})
  WHERE toUnixTimestamp(window_start) >= {since:UInt32} AND toUnixTimestamp(window_start) < {to:UInt32}
    AND (empty({states:Array(String)}) OR has({states:Array(String)}, toString(state)))
  ORDER BY start, table`;

// A version's low 64 bits: 16 bits of partition, 48 of offset. PREWHERE selects before FINAL merges.
const countSql = (table: WindowTable): string => `SELECT w AS start, sum(n) AS rows,
    arraySort(groupUniqArray(p)) AS partitions, maxMap(map(b, highest)) AS offsets
  FROM (SELECT intDiv(toUnixTimestamp(uploaded_at), {seconds:UInt32}) * {seconds:UInt32} AS w, _partition_id AS p,
      toUInt16(bitShiftRight(toUInt64(version), 48)) AS b, count() AS n,
      max(bitAnd(toUInt64(version), 281474976710655)) AS highest
    FROM ${table} FINAL PREWHERE uploaded_at >= ${micros("since")}
    GROUP BY w, p, b)
  GROUP BY w`;

const writtenSql = (table: WindowTable): string =>
  `SELECT DISTINCT intDiv(toUnixTimestamp(uploaded_at), {seconds:UInt32}) * {seconds:UInt32} AS start FROM ${table}
    WHERE uploaded_at >= ${micros("since")} ORDER BY start`;

const RECENT = 6;

export function createWindowStore(deps: {
  readonly session: Session;
  readonly windowSeconds: number;
}): WindowStore {
  const { windowSeconds } = deps;
  const session = deps.session.with({
    timeoutMs: 600_000,
    settings: {
      do_not_merge_across_partitions_select_final: 1,
      use_skip_indexes_if_final: 1,
      // Only rows that PREWHERE would leave out anyway are skipped.
      use_skip_indexes_if_final_exact_mode: 0,
    },
  });

  async function list(filter: WindowFilter = {}): Promise<readonly UploadWindow[]> {
    const parameters = {
      seconds: windowSeconds,
      since: Math.floor((filter.since ?? 0) / MICROS_IN_SECOND),
      to: filter.to === undefined ? 2 ** 32 - 1 : Math.ceil(filter.to / MICROS_IN_SECOND),
      states: [...(filter.states ?? [])],
    };
    const rows = await session.rows<StoredWindow>("windows.list", LIST, { parameters });
    return rows.map(toWindow);
  }

  async function countFrom(
    table: WindowTable,
    since: Micros,
    signal: AbortSignal | undefined,
  ): Promise<readonly WindowCount[]> {
    const parameters = { seconds: windowSeconds, since };
    type Row = { start: number } & Omit<WindowCount, "start" | "table">;
    const rows = await session.rows<Row>("windows.count", countSql(table), { parameters, signal });
    return rows.map(({ start, ...count }) => ({ ...count, start: start * MICROS_IN_SECOND, table }));
  }

  async function save(lines: readonly UploadWindow[]): Promise<void> {
    if (lines.length === 0) return;
    // ClickHouse's clock, and above the highest version: hosts' clocks differ, so a later save could lose.
    const [clock] = await session.rows<{ now: number; highest: number }>(
      "windows.version",
      `SELECT toUnixTimestamp64Micro(now64(6)) AS now, toInt64(max(version)) AS highest FROM upload_windows
        WHERE seconds = {seconds:UInt32}`,
      { parameters: { seconds: windowSeconds } },
    );
    if (clock === undefined) throw new Error("an aggregation without a row");
    const version = Math.max(clock.now, clock.highest + 1);
    const rows = lines.map((line) => ({
      seconds: windowSeconds,
      window_start: toSeconds(line.start),
      table: line.table,
      version,
      state: line.state,
      rows: line.rows,
      partitions: line.partitions,
      offsets: line.offsets,
      reopened: line.reopened,
      opened_at: toSeconds(line.openedAt),
      closed_at: toSeconds(line.closedAt),
      compacted_at: toSeconds(line.compactedAt),
      backfilled_at: toSeconds(line.backfilledAt),
      result: line.result,
    }));
    await session.insert("windows.save", { table: "upload_windows", rows });
  }

  return {
    list,
    save,
    async edges() {
      const [row] = await session.rows<{ last: number | null; open: number | null }>(
        "windows.edges",
        `SELECT toUnixTimestamp(maxOrNull(window_start)) AS last,
            toUnixTimestamp(minOrNullIf(window_start, state = 'open')) AS open
          FROM upload_windows FINAL WHERE seconds = {seconds:UInt32}`,
        { parameters: { seconds: windowSeconds } },
      );
      return { last: toMicros(row?.last ?? null), open: toMicros(row?.open ?? null) };
    },
    async count(since, signal) {
      const counts: FoundCount[] = [];
      for (const table of WINDOW_TABLES) {
        const written = await session.rows<{ start: number }>("windows.written", writtenSql(table), {
          parameters: { seconds: windowSeconds, since },
          signal,
        });
        const starts = written.map(({ start }) => start * MICROS_IN_SECOND);
        const recent = starts.slice(-RECENT);
        const [first = END_OF_TIME] = recent;
        const find = async (from: Micros, isByItself: boolean, isWanted: (start: Micros) => boolean) => {
          for (const count of await countFrom(table, from, signal))
            if (isWanted(count.start)) counts.push({ ...count, isByItself });
        };
        if (recent.length < starts.length) await find(since, false, (start) => start < first);
        // Each from its own start, so that its number does not depend on `since`.
        for (const at of recent) await find(at, true, (start) => start === at);
      }
      return counts;
    },
    async markBackfilled({ from, to }, at) {
      const lines = await list({ since: from, to, states: ["closed", "compacted", "backfilled"] });
      const inside = lines.filter(({ start }) => start + windowSeconds * MICROS_IN_SECOND <= to);
      await save(inside.map((line) => ({ ...line, state: "backfilled", backfilledAt: at })));
    },
    async lengths() {
      const rows = await session.rows<{ seconds: number }>(
        "windows.lengths",
        "SELECT DISTINCT seconds FROM upload_windows ORDER BY seconds",
      );
      return rows.map(({ seconds }) => seconds);
    },
    async countStates() {
      const states: Record<WindowState, number> = { open: 0, closed: 0, compacted: 0, backfilled: 0 };
      const rows = await session.rows<{ state: WindowState; lines: number }>(
        "windows.states",
        "SELECT state, count() AS lines FROM upload_windows FINAL WHERE seconds = {seconds:UInt32} GROUP BY state",
        { parameters: { seconds: windowSeconds } },
      );
      for (const { state, lines } of rows) states[state] = lines;
      return states;
    },
  };
}
