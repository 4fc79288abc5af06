/**
 * The dates of records that have several, noted for pages. Readers look up only records at a noted date, and those
 * with entries of `changes` behind the instant up to which dates are noted.
 */
import { formatTimestampZ, type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { micros } from "../session/micros-sql.ts";
import type { Session } from "../session/session.ts";
import { DATED_KINDS, recordNameSql } from "../tables/record-dates.ts";

/** Name in the table of watermarks. */
const NOTED = "changes with dates noted";
const NOTED_UNTIL = `SELECT toString(max(version)) AS micros FROM watermarks WHERE list = '${NOTED}'`;

/** Behind a longer time all records are looked at instead of those with entries. */
const MOST_AT_ONCE: Micros = 600 * MICROS_IN_SECOND;

const TIMEOUT_MS = 3_600_000;

export type MovedDates = {
  /**
   * Notes the dates of the records with entries before `until` that have several.
   *
   * @param until a settled instant, µs
   * @throws WarehouseError
   */
  note(until: Micros, signal?: AbortSignal): Promise<void>;
};

/** The instant before which dates are noted, µs; 0: there is none. */
export const readNoted = async (session: Session, name: "pages.noted" | "moved.noted"): Promise<Micros> => {
  const [row] = await session.rows<{ micros: string }>(name, NOTED_UNTIL);
  return Number(row?.micros ?? 0);
};

const ENTRIES = DATED_KINDS.map(
  (kind) => `SELECT ${recordNameSql("client_id", kind, "id")} FROM changes
      WHERE kind = '${kind}' AND stored_at >= ${micros("from")} AND stored_at < ${micros("until")}`,
).join(" UNION ALL ");

const noteSql = (records: string): string => `INSERT INTO moved_dates (client_id, kind, date_created)
  SELECT of_client, of_kind, arrayJoin(dates) FROM (
    SELECT any(client_id) AS of_client, any(kind) AS of_kind, groupUniqArray(date_created) AS dates
    FROM record_dates WHERE ${records}
    GROUP BY record HAVING min(date_created) != max(date_created))`;

/** @param deps.session of the user for jobs */
export const createMovedDates = (deps: { readonly session: Session }): MovedDates => {
  const session = deps.session.with({
    timeoutMs: TIMEOUT_MS,
    // In the order of the table, so that no group is held in memory.
    settings: { async_insert: 0, max_threads: 1, optimize_aggregation_in_order: 1 },
  });
  return {
    note: async (until, signal) => {
      const from = await readNoted(session, "moved.noted");
      if (until <= from) return;
      // Entries of long ago may be gone with records that are gone; those of the others may be many.
      const records = until - from > MOST_AT_ONCE ? "true" : `record GLOBAL IN (${ENTRIES})`;
      await session.command("moved.note", noteSql(records), { parameters: { from, until }, signal });
      const rows = [{ list: NOTED, version: until, instant: formatTimestampZ(until) }];
      await session.insert("moved.save", { table: "watermarks", rows }, { signal });
    },
  };
};
