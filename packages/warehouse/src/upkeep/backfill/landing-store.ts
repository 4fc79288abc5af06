import {
  formatTimestampZ,
  type Micros,
  MICROS_IN_DAY,
  READABLE_FIRST,
  type RecordTableFacts,
} from "@conversation-export/domain";
import { micros } from "../../session/micros-sql.ts";
import type { Session } from "../../session/session.ts";
import { NO_PROJECTIONS } from "../deletion.ts";

/** Rows uploaded from `since` to `asOf` have their event in `landing`, if read before it is looked up. */
export type LandingCoverage = { readonly since: Micros; readonly asOf: Micros };

/** @throws WarehouseError from every method */
export type LandingStore = {
  /** Rows uploaded up to `until` may lack events. */
  markGap(until: Micros, signal?: AbortSignal): Promise<void>;
  /** Holds for a day: days that expire by tomorrow do not count. null: `landing` is empty. */
  coverage(signal?: AbortSignal): Promise<LandingCoverage | null>;
};

/** Later rows near a hole may lack events too: batches have their own stamps. */
const BESIDE_A_HOLE: Micros = 120_000_000;
const LOOKS = 5;

const DAY_OF_UPLOAD = "toUInt16(toDate(uploaded_at))";
const OLDEST = micros("oldest");
const KEPT = `${DAY_OF_UPLOAD} IN {kept:Array(UInt16)}`;

const header = (name: string): string => `arrayFirst(h -> h.1 = '${name}', headers).2`;
/** As in a version's lower half; replayed events and those of files have it in headers. */
const place = (partition: string, offset: string): string =>
  `bitOr(bitShiftLeft(toUInt64(${partition}), 48), ${offset})`;
const PLACES = `if(${header("dl-offset")} = '', [${place("partition", "offset")}], [${place("partition", "offset")},
  ${place(`toUInt16OrZero(${header("dl-partition")})`, `toUInt64OrZero(${header("dl-offset")})`)}])`;

/** Rows whose stamp no event has; those from before the oldest event are never corrected. */
const withoutUploadInLanding = (
  { name, created }: RecordTableFacts,
  columns: string,
): string => `SELECT ${columns} FROM ${name}
  WHERE uploaded_at >= ${OLDEST} AND ${created} >= ${OLDEST}
    AND uploaded_at NOT IN (SELECT uploaded_at FROM landing WHERE ${KEPT})`;

const latestHole = (source: RecordTableFacts): string => {
  const { type, id } = source;
  const ofDay = (columns: string): string =>
    `${withoutUploadInLanding(source, columns)} AND ${DAY_OF_UPLOAD} = {day:UInt16}`;
  return `SELECT toString(toUnixTimestamp64Micro(max(uploaded_at))) AS latest, count() AS found
    FROM (${ofDay(`uploaded_at, cityHash64(client_id, ${id}, toUInt64(version)) AS event`)})
    WHERE event NOT IN (
      SELECT cityHash64(client_id, record_id, arrayJoin(${PLACES})) FROM landing
      WHERE ${KEPT} AND type = '${type}'
        AND cityHash64(client_id, record_id) IN (${ofDay(`cityHash64(client_id, ${id})`)}))`;
};

type Day = { readonly day: number; readonly oldest: string; readonly expiring: number };

export function createLandingStore(deps: { readonly session: Session }): LandingStore {
  const session = deps.session.with({ timeoutMs: 300_000, settings: NO_PROJECTIONS });

  async function latestHoleSince(
    landed: { readonly oldest: Micros; readonly kept: readonly number[] },
    signal: AbortSignal | undefined,
  ): Promise<Micros | null> {
    const suspects: { day: number; source: RecordTableFacts }[] = [];
    for (const source of READABLE_FIRST) {
      const query = `SELECT DISTINCT day FROM (${withoutUploadInLanding(source, `${DAY_OF_UPLOAD} AS day`)})`;
      const days = await session.rows<{ day: number }>("landing.suspect_days", query, {
        parameters: landed,
        signal,
      });
      for (const { day } of days) suspects.push({ day, source });
    }
    let latest: Micros | null = null;
    for (const { day, source } of suspects.sort((one, other) => other.day - one.day)) {
      if (latest !== null && day < Math.floor(latest / MICROS_IN_DAY)) break;
      for (let look = 1; look <= LOOKS; look += 1) {
        const [row] = await session.rows<{ latest: string; found: string }>(
          "landing.latest_hole",
          latestHole(source),
          { parameters: { ...landed, day }, signal },
        );
        if (row === undefined || Number(row.found) === 0) break;
        const at = Number(row.latest);
        // Events are inserted before their rows: if it was only late, it is there now.
        const [landing] = await session.rows<{ found: string }>(
          "landing.look_again",
          `SELECT count() AS found FROM landing WHERE uploaded_at = ${micros("at")}`,
          { parameters: { at }, signal },
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
      // Only the latest gap counts, so processes share one row.
      const row = { writer: "ingest", version: until, until: formatTimestampZ(until) };
      await session.insert("landing.mark_gap", { table: "landing_gaps", rows: [row] }, { signal });
    },
    async coverage(signal) {
      // First: rows uploaded during the following queries must lie after `asOf`.
      const [clock] = await session.rows<{ now: string }>(
        "landing.clock",
        "SELECT toString(toUnixTimestamp64Micro(now64(6))) AS now",
        { signal },
      );
      const [gap] = await session.rows<{ until: string }>(
        "landing.gap",
        "SELECT toString(max(version)) AS until FROM landing_gaps",
        { signal },
      );
      const days = await session.rows<Day>(
        "landing.days",
        `SELECT toUInt16(toDate(uploaded_at)) AS day, toString(toUnixTimestamp64Micro(min(uploaded_at))) AS oldest,
           toUInt8(min(expires_on) <= toDate(now('UTC')) + 1) AS expiring
         FROM landing GROUP BY day`,
        { signal },
      );
      const kept = days.filter(({ expiring }) => expiring === 0);
      if (kept.length === 0) return null;
      const oldest = Math.min(...kept.map((one) => Number(one.oldest)));
      const hole = await latestHoleSince({ oldest, kept: kept.map(({ day }) => day) }, signal);
      const since = Math.max(
        oldest,
        // `until` is part of the gap.
        Number(gap?.until ?? 0) + 1,
        hole === null ? 0 : hole + BESIDE_A_HOLE,
      );
      return { since, asOf: Number(clock?.now) };
    },
  };
}
