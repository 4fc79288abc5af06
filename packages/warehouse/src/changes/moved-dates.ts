/** Readers look up only records at these dates, or with newer entries of `changes` (docs/decisions/0024). */
import { DATED_KINDS, formatTimestampZ, type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { micros } from "../session/micros-sql.ts";
import type { Session } from "../session/session.ts";
import { recordNameSql } from "../tables/record-dates.ts";

export const KNOWN_UP_TO = "changes with dates known";
const KNOWN_SQL = `SELECT toString(max(version)) AS micros FROM watermarks WHERE list = '${KNOWN_UP_TO}'`;

const SLICE: Micros = 60 * MICROS_IN_SECOND;
/** A replica may have lacked entries, or dates of records. */
const OVERLAP: Micros = 30 * MICROS_IN_SECOND;
/** Per statement; a pass continues where it was cut off. */
const NAMES = 1_000_000;

const TIMEOUT_MS = 600_000;

export type MovedDates = {
  /**
   * Stores dates of moved records with entries before `until` (stable), at first of all records; continues after
   * errors.
   * @throws WarehouseError
   */
  note(until: Micros, signal?: AbortSignal): Promise<void>;
  known(): Promise<Micros>;
};

/** Dates are known up to it; 0: none. */
export const readKnownUpTo = async (
  session: Session,
  name: "pages.known" | "moved.known",
): Promise<Micros> => {
  const [row] = await session.rows<{ micros: string }>(name, KNOWN_SQL);
  return Number(row?.micros ?? 0);
};

// A deletion's entry describes no younger rows.
const ENTRIES = DATED_KINDS.map(
  (kind) => `SELECT ${recordNameSql("client_id", kind, "id")} FROM changes
      WHERE kind = '${kind}' AND NOT deleted AND stored_at >= ${micros("from")} AND stored_at < ${micros("until")}`,
).join(" UNION ALL ");

const noteSql = (records: string): string => `INSERT INTO moved_dates (client_id, kind, date_created)
  SELECT of_client, of_kind, arrayJoin(dates) FROM (
    SELECT any(client_id) AS of_client, any(kind) AS of_kind, groupUniqArray(date_created) AS dates
    FROM record_dates WHERE ${records}
    GROUP BY record HAVING min(date_created) != max(date_created))`;

const BETWEEN = "record > {after:String} AND record <= {last:String}";
const LAST_OF_PASS = `SELECT record AS last FROM record_dates WHERE record > {after:String}
  ORDER BY record LIMIT 1 OFFSET {names:UInt32}`;

export const createMovedDates = (deps: { readonly session: Session }): MovedDates => {
  const session = deps.session.with({
    timeoutMs: TIMEOUT_MS,
    // In the table's order, so that memory holds no group.
    settings: { async_insert: 0, max_threads: 1, optimize_aggregation_in_order: 1 },
  });
  /** A pass over all records: what was stable at its begin, and its last name. */
  let pass: { readonly until: Micros; readonly after: string } | undefined;

  const save = (until: Micros, signal: AbortSignal | undefined): Promise<void> => {
    const rows = [{ list: KNOWN_UP_TO, version: until, instant: formatTimestampZ(until) }];
    return session.insert("moved.save", { table: "watermarks", rows }, { signal });
  };

  const noteAll = async (until: Micros, signal: AbortSignal | undefined): Promise<Micros> => {
    let { after } = (pass ??= { until, after: "" });
    const begun = pass.until;
    for (;;) {
      const asked = { parameters: { after, names: NAMES }, signal };
      const [row] = await session.rows<{ last: string }>("moved.last", LAST_OF_PASS, asked);
      const records = row === undefined ? "record > {after:String}" : BETWEEN;
      const parameters = { after, last: row?.last ?? "" };
      await session.command("moved.note", noteSql(records), { parameters, signal });
      if (row === undefined) break;
      after = row.last;
      pass = { until: begun, after };
    }
    pass = undefined;
    return begun;
  };

  const known = (): Promise<Micros> => readKnownUpTo(session, "moved.known");
  return {
    known,
    note: async (until, signal) => {
      let reached = await known();
      if (reached > 0) pass = undefined;
      if (until <= reached) return;
      if (reached === 0) {
        reached = await noteAll(until, signal);
        await save(reached, signal);
      }
      while (reached < until) {
        const next = Math.min(until, reached + SLICE);
        const parameters = { from: reached - OVERLAP, until: next };
        await session.command("moved.note", noteSql(`record GLOBAL IN (${ENTRIES})`), { parameters, signal });
        await save(next, signal);
        reached = next;
      }
    },
  };
};
