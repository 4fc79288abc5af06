import type { ClickHouseClient } from "@clickhouse/client";
import { type EventType, formatTimestampZ, type Micros } from "@conversation-export/domain";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/**
 * Every row with `since` <= uploaded_at <= `asOf` has its event in the landing table, once the event is looked for
 * after the row was seen.
 */
export type LandingCoverage = { readonly since: Micros; readonly asOf: Micros };

/** Throws `WarehouseError`. */
export type LandingStore = {
  /** Says that rows uploaded up to `until` may have been written without their events. */
  markGap(until: Micros, signal?: AbortSignal): Promise<void>;
  /**
   * How far the landing table reaches back without a hole; null when it is empty. Days of which rows expire today or
   * tomorrow do not count, so what is covered stays so for a day.
   */
  coverage(signal?: AbortSignal): Promise<LandingCoverage | null>;
  close(): Promise<void>;
};

type RecordSource = {
  readonly table: string;
  readonly type: EventType;
  readonly id: string;
  readonly created: string;
};

const RECORD_SOURCES: readonly RecordSource[] = [
  ...["conversations", "conversation_updates", "handoffs"].map((table) => ({
    table,
    type: "conversation.exported" as const,
    id: "conversation_id",
    created: table === "handoffs" ? "conversation_date_created" : "date_created",
  })),
  { table: "messages", type: "message.exported", id: "message_id", created: "date_created" },
  { table: "end_users", type: "end_user.exported", id: "end_user_id", created: "date_created" },
];

/** What lost its event was written with one instant of upload, others beside it: a batch keeps its own for a minute. */
const BESIDE_A_HOLE: Micros = 120_000_000;
/** How often a row is looked at again whose event arrived while it was looked for. */
const LOOKS = 5;

const DAY_OF_UPLOAD = "toUInt16(toDate(uploaded_at))";
const OLDEST = "fromUnixTimestamp64Micro({oldest:Int64}, 'UTC')";
const KEPT = `${DAY_OF_UPLOAD} IN {kept:Array(UInt16)}`;

const header = (name: string): string => `arrayFirst(h -> h.1 = '${name}', headers).2`;
/** As in the lower half of a version; that of an event that was replayed or read from a file stands in its headers. */
const place = (partition: string, offset: string): string =>
  `bitOr(bitShiftLeft(toUInt64(${partition}), 48), ${offset})`;
const PLACES = `if(${header("dl-offset")} = '', [${place("partition", "offset")}], [${place("partition", "offset")},
  ${place(`toUInt16OrZero(${header("dl-partition")})`, `toUInt64OrZero(${header("dl-offset")})`)}])`;

/**
 * Rows that carry an instant at which no event landed: their event was written again, or a job has written them, or
 * their event is gone. Records created before the oldest event are never corrected.
 */
const strangers = (
  { table, created }: RecordSource,
  columns: string,
): string => `SELECT ${columns} FROM ${table}
  WHERE uploaded_at >= ${OLDEST} AND ${created} >= ${OLDEST}
    AND uploaded_at NOT IN (SELECT uploaded_at FROM landing WHERE ${KEPT})`;

/** The latest upload of one day whose event is gone: no event of this record came from the place in its version. */
const latestHole = (source: RecordSource): string => {
  const { type, id } = source;
  const ofDay = (columns: string): string =>
    `${strangers(source, columns)} AND ${DAY_OF_UPLOAD} = {day:UInt16}`;
  return `SELECT toString(toUnixTimestamp64Micro(max(uploaded_at))) AS latest, count() AS found
    FROM (${ofDay(`uploaded_at, cityHash64(client_id, ${id}, toUInt64(version)) AS event`)})
    WHERE event NOT IN (
      SELECT cityHash64(client_id, record_id, arrayJoin(${PLACES})) FROM landing
      WHERE ${KEPT} AND type = '${type}'
        AND cityHash64(client_id, record_id) IN (${ofDay(`cityHash64(client_id, ${id})`)}))`;
};

const MICROS_IN_DAY = 86_400_000_000;

type Day = { readonly day: number; readonly oldest: string; readonly expiring: number };

/** `url`: `http://user:password@host:port/database` of a user that may read and insert. */
export function createLandingStore(deps: WarehouseAccess): LandingStore {
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 2,
    requestTimeoutMs: 300_000,
    settings: {
      // A projection may show rows that are hidden in its table.
      optimize_use_projections: 0,
    },
  });

  async function rowsOf<Row>(
    query: string,
    signal: AbortSignal | undefined,
    parameters = {},
  ): Promise<Row[]> {
    const result = await client.query({
      query,
      format: "JSONEachRow",
      query_params: parameters,
      ...(signal === undefined ? {} : { abort_signal: signal }),
    });
    return result.json<Row>();
  }

  /** The instant of the latest row whose event is not among the kept ones. */
  async function latestHoleSince(
    landed: { readonly oldest: Micros; readonly kept: readonly number[] },
    signal: AbortSignal | undefined,
  ): Promise<Micros | null> {
    const suspects: { day: number; source: RecordSource }[] = [];
    for (const source of RECORD_SOURCES) {
      const query = `SELECT DISTINCT day FROM (${strangers(source, `${DAY_OF_UPLOAD} AS day`)})`;
      const days = await rowsOf<{ day: number }>(query, signal, landed);
      for (const { day } of days) suspects.push({ day, source });
    }
    let latest: Micros | null = null;
    for (const { day, source } of suspects.sort((one, other) => other.day - one.day)) {
      if (latest !== null && day < Math.floor(latest / MICROS_IN_DAY)) break;
      for (let look = 1; look <= LOOKS; look += 1) {
        const [row] = await rowsOf<{ latest: string; found: string }>(latestHole(source), signal, {
          ...landed,
          day,
        });
        if (row === undefined || Number(row.found) === 0) break;
        const at = Number(row.latest);
        // Its event is written before it: what was not there yet is there now.
        const [landing] = await rowsOf<{ found: string }>(
          `SELECT count() AS found FROM landing WHERE uploaded_at = fromUnixTimestamp64Micro({at:Int64}, 'UTC')`,
          signal,
          { at },
        );
        if (look < LOOKS && Number(landing?.found) > 0) continue;
        latest = Math.max(latest ?? 0, at);
        break;
      }
    }
    return latest;
  }

  return {
    async markGap(until, signal) {
      try {
        await client.insert({
          table: "landing_gaps",
          // The latest of all processes is what counts, so they share one row.
          values: [{ writer: "ingest", version: until, until: formatTimestampZ(until) }],
          format: "JSONEachRow",
          clickhouse_settings: { async_insert: 0 },
          ...(signal === undefined ? {} : { abort_signal: signal }),
        });
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    async coverage(signal) {
      try {
        // The clock first: what is written while the tables are read is behind it.
        const [clock] = await rowsOf<{ now: string }>(
          "SELECT toString(toUnixTimestamp64Micro(now64(6))) AS now",
          signal,
        );
        const [gap] = await rowsOf<{ until: string }>(
          "SELECT toString(max(version)) AS until FROM landing_gaps",
          signal,
        );
        const days = await rowsOf<Day>(
          `SELECT toUInt16(toDate(uploaded_at)) AS day, toString(toUnixTimestamp64Micro(min(uploaded_at))) AS oldest,
             toUInt8(min(expires_on) <= toDate(now('UTC')) + 1) AS expiring
           FROM landing GROUP BY day`,
          signal,
        );
        const kept = days.filter(({ expiring }) => expiring === 0);
        if (kept.length === 0) return null;
        const oldest = Math.min(...kept.map((one) => Number(one.oldest)));
        const hole = await latestHoleSince({ oldest, kept: kept.map(({ day }) => day) }, signal);
        const since = Math.max(
          oldest,
          // A row may have been uploaded at the very end of the gap.
          Number(gap?.until ?? 0) + 1,
          hole === null ? 0 : hole + BESIDE_A_HOLE,
        );
        return { since, asOf: Number(clock?.now) };
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
}
