import type { ClickHouseClient } from "@clickhouse/client";
import {
  type Micros,
  type UploadWindow,
  WINDOW_TABLES,
  type WindowCount,
  type WindowState,
  type WindowTable,
} from "@conversation-export/domain";
import { clusterNames } from "./cluster-names.ts";
import { connect, type WarehouseAccess } from "./connection.ts";
import type { Topology } from "./migration-template.ts";
import { toWarehouseError } from "./warehouse-error.ts";

const SECOND = 1_000_000;

/** Both instants in µs; a window belongs to the range when it starts in it. */
export type WindowFilter = {
  readonly since?: Micros;
  readonly to?: Micros;
  readonly states?: readonly WindowState[];
  /** Windows in which partitions wait for a merge. */
  readonly withPending?: boolean;
};

/** The ledger of upload windows. Throws `WarehouseError`. */
export type WindowStore = {
  /** The ledger, oldest window first. */
  list(filter?: WindowFilter): Promise<readonly UploadWindow[]>;
  /** Counts what the tables hold of windows from `since` on, readable rows only. `since` is the start of a window. */
  count(since: Micros, signal?: AbortSignal): Promise<readonly WindowCount[]>;
  /** Who reads lines, changes and saves them does so alone: the last one to save wins. */
  save(lines: readonly UploadWindow[]): Promise<void>;
  /**
   * Notes that the records of these windows were computed anew: windows that are closed and lie in the range. One that
   * was not compacted still waits for that. Nobody else may change the ledger meanwhile.
   */
  markBackfilled(range: { readonly from: Micros; readonly to: Micros }, at: Micros): Promise<void>;
  /** When the oldest INSERT that ClickHouse works on began; null: there is none. */
  oldestInsert(): Promise<Micros | null>;
  /** In seconds, of all windows that the ledger has. */
  lengths(): Promise<readonly number[]>;
  /** Tables and windows by state. */
  countStates(): Promise<Readonly<Record<WindowState, number>>>;
  close(): Promise<void>;
};

type StoredWindow = {
  start: number;
  table: WindowTable;
  state: WindowState;
  rows: number;
  partitions: string[];
  pending: string[];
  offsets: Record<string, number>;
  reopened: number;
  opened_at: number;
  closed_at: number | null;
  compacted_at: number | null;
  backfilled_at: number | null;
  result: string;
};

const toMicros = (seconds: number | null): Micros | null => (seconds === null ? null : seconds * SECOND);
const toSeconds = (instant: Micros | null): number | null =>
  instant === null ? null : Math.floor(instant / SECOND);

const toWindow = (row: StoredWindow): UploadWindow => ({
  start: row.start * SECOND,
  table: row.table,
  state: row.state,
  rows: row.rows,
  partitions: row.partitions,
  pending: row.pending,
  offsets: row.offsets,
  reopened: row.reopened,
  openedAt: row.opened_at * SECOND,
  closedAt: toMicros(row.closed_at),
  compactedAt: toMicros(row.compacted_at),
  backfilledAt: toMicros(row.backfilled_at),
  result: row.result,
});

const LIST = `SELECT toUnixTimestamp(window_start) AS start, table, state, rows, partitions, pending, offsets, reopened,
    toUnixTimestamp(opened_at) AS opened_at, toUnixTimestamp(closed_at) AS closed_at,
    toUnixTimestamp(compacted_at) AS compacted_at, toUnixTimestamp(backfilled_at) AS backfilled_at, result
  FROM (SELECT * FROM upload_windows FINAL WHERE seconds = {seconds:UInt32})
  WHERE toUnixTimestamp(window_start) >= {since:UInt32} AND toUnixTimestamp(window_start) < {to:UInt32}
    AND (empty({states:Array(String)}) OR has({states:Array(String)}, toString(state)))
    AND ({pending:Bool} = false OR notEmpty(pending))
  ORDER BY start, table`;

// The low 64 bits of a version are the place on the bus.
const countSql = (table: WindowTable): string => `SELECT w AS start, sum(n) AS rows,
    arraySort(groupUniqArray(p)) AS partitions, maxMap(map(b, highest)) AS offsets
  FROM (SELECT intDiv(toUnixTimestamp(uploaded_at), {seconds:UInt32}) * {seconds:UInt32} AS w, _partition_id AS p,
      toUInt16(bitShiftRight(toUInt64(version), 48)) AS b, count() AS n,
      max(bitAnd(toUInt64(version), 281474976710655)) AS highest
    FROM ${table} FINAL WHERE uploaded_at >= fromUnixTimestamp64Micro({since:Int64}, 'UTC')
    GROUP BY w, p, b)
  GROUP BY w`;

/** `url`: of the user for jobs; `windowSeconds`: the length of a window. */
export function createWindowStore(
  deps: WarehouseAccess & {
    readonly topology: Topology;
    readonly windowSeconds: number;
  },
): WindowStore {
  const { windowSeconds } = deps;
  const { system } = clusterNames(deps.topology);
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 2,
    requestTimeoutMs: 600_000,
    settings: {
      output_format_json_quote_64bit_integers: 0,
      do_not_merge_across_partitions_select_final: 1,
      // An index on a column that differs between versions must not hide the newest one.
      use_skip_indexes_if_final: 1,
      use_skip_indexes_if_final_exact_mode: 1,
    },
  });

  async function rowsOf<T>(
    query: string,
    parameters: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<T[]> {
    try {
      const result = await client.query({
        query,
        query_params: parameters,
        format: "JSONEachRow",
        ...(signal === undefined ? {} : { abort_signal: signal }),
      });
      return await result.json<T>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  async function list(filter: WindowFilter = {}): Promise<readonly UploadWindow[]> {
    const rows = await rowsOf<StoredWindow>(LIST, {
      seconds: windowSeconds,
      since: Math.floor((filter.since ?? 0) / SECOND),
      to: filter.to === undefined ? 2 ** 32 - 1 : Math.ceil(filter.to / SECOND),
      states: [...(filter.states ?? [])],
      pending: filter.withPending === true,
    });
    return rows.map(toWindow);
  }

  async function save(lines: readonly UploadWindow[]): Promise<void> {
    if (lines.length === 0) return;
    // Clocks of hosts differ, so that a line saved later could lose.
    const [clock] = await rowsOf<{ now: number; highest: number }>(
      `SELECT toUnixTimestamp64Micro(now64(6)) AS now, toInt64(max(version)) AS highest FROM upload_windows
        WHERE seconds = {seconds:UInt32}`,
      { seconds: windowSeconds },
    );
    if (clock === undefined) throw new Error("an aggregation without a row");
    const version = Math.max(clock.now, clock.highest + 1);
    try {
      await client.insert({
        table: "upload_windows",
        values: lines.map((line) => ({
          seconds: windowSeconds,
          window_start: toSeconds(line.start),
          table: line.table,
          version,
          state: line.state,
          rows: line.rows,
          partitions: line.partitions,
          pending: line.pending,
          offsets: line.offsets,
          reopened: line.reopened,
          opened_at: toSeconds(line.openedAt),
          closed_at: toSeconds(line.closedAt),
          compacted_at: toSeconds(line.compactedAt),
          backfilled_at: toSeconds(line.backfilledAt),
          result: line.result,
        })),
        format: "JSONEachRow",
        clickhouse_settings: { async_insert: 0 },
      });
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  return {
    list,
    save,
    async count(since, signal) {
      const counts: WindowCount[] = [];
      for (const table of WINDOW_TABLES) {
        const parameters = { seconds: windowSeconds, since };
        type Row = { start: number } & Omit<WindowCount, "start" | "table">;
        for (const { start, ...count } of await rowsOf<Row>(countSql(table), parameters, signal))
          counts.push({ ...count, start: start * SECOND, table });
      }
      return counts;
    },
    async markBackfilled({ from, to }, at) {
      const lines = await list({ since: from, to, states: ["closed", "compacted", "backfilled"] });
      const inside = lines.filter(({ start }) => start + windowSeconds * SECOND <= to);
      await save(inside.map((line) => ({ ...line, state: "backfilled", backfilledAt: at })));
    },
    async oldestInsert() {
      const [row] = await rowsOf<{ inserts: number; micros: number }>(
        `SELECT count() AS inserts, min(toUnixTimestamp64Micro(now64(6)) - toInt64(elapsed * 1000000)) AS micros
          FROM ${system("processes")} WHERE query_kind = 'Insert' AND is_initial_query`,
        {},
      );
      return row === undefined || row.inserts === 0 ? null : row.micros;
    },
    async lengths() {
      const rows = await rowsOf<{ seconds: number }>(
        "SELECT DISTINCT seconds FROM upload_windows ORDER BY seconds",
        {},
      );
      return rows.map(({ seconds }) => seconds);
    },
    async countStates() {
      const states: Record<WindowState, number> = { open: 0, closed: 0, compacted: 0, backfilled: 0 };
      const rows = await rowsOf<{ state: WindowState; lines: number }>(
        "SELECT state, count() AS lines FROM upload_windows FINAL WHERE seconds = {seconds:UInt32} GROUP BY state",
        { seconds: windowSeconds },
      );
      for (const { state, lines } of rows) states[state] = lines;
      return states;
    },
    close: () => client.close(),
  };
}
