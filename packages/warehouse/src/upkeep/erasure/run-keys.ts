import type { ClickHouseSettings } from "@clickhouse/client";
import type { Session } from "../../session/session.ts";
import { WITH_HIDDEN } from "../deletion.ts";
import { type Alive, createJobKeys } from "../job-keys.ts";
import { recordNameSql } from "../../tables/record-dates.ts";
import { all, countOf, KIND, recordKind, recordsOf, RUN, type Table, TABLES } from "./erasure-keys.ts";

/** What the keys of a run stand for, and their end. */
export type ErasureRunKeys = {
  /** Rows left by table, including masked ones that are still stored. */
  remaining(runId: string): Promise<Readonly<Record<string, number>>>;
  /**
   * Notes for each request and table how many rows are to be deleted, for the receipts. A row that several
   * requests reach counts for one of them.
   */
  countRows(runId: string): Promise<void>;
  /**
   * Names of the runs that have died: their holder is not alive, or they have keys that are older than an hour.
   * Keys that they leave are needed by `tell`: asked for before it, and removed after it.
   */
  left(alive: Alive): Promise<readonly string[]>;
  /** Removes the keys of all runs that begin with `runPrefix`, and of those `left`. */
  end(runPrefix: string, signal: AbortSignal, left?: readonly string[]): Promise<void>;
};

/** Rows of a table whose keys a run has collected. */
export const rowsLeft = async (
  session: Session,
  table: Table,
  run: string,
  settings: ClickHouseSettings = {},
): Promise<number> => {
  const sql = `SELECT toString(count()) AS rows FROM ${table.table} WHERE ${recordsOf(table)}`;
  return countOf(await session.rows("erasure.count_left", sql, { parameters: { run }, settings }));
};

/** INSERT of the counts of the rows of one table, masked ones included. */
const countOfRows = ({ table, records }: Table): string => {
  const found = records.map(({ kind, id, date, only = "1", named }) => {
    const ofKind = `FROM job_keys WHERE ${RUN} AND kind = '${recordKind(kind)}'`;
    const name = named === undefined ? "(client_id, id)" : recordNameSql("client_id", named, "id");
    const row = named === undefined ? `(client_id, ${id})` : "record";
    return `SELECT k.client AS client, k.request AS request FROM
      (SELECT ${row} AS name, ${date} AS date FROM ${table} WHERE ${only}
        AND (name, date) GLOBAL IN (SELECT ${name}, date_created ${ofKind})) AS r
      GLOBAL INNER JOIN (SELECT any(client_id) AS client, ${name} AS name, date_created, any(target) AS request
        ${ofKind} GROUP BY name, date_created) AS k ON r.name = k.name AND r.date = k.date_created`;
  });
  return `INSERT INTO job_keys (run_id, kind, client_id, id, target, version)
    SELECT {run:String}, '${KIND.counted}', client, request, '${table}', count()
    FROM (${found.join(" UNION ALL ")}) WHERE request != '' GROUP BY client, request`;
};

/** Whether the holder of a run `<job>/<holder>/<id>` is none of the `living`. */
const isDead = (run: string, living: ReadonlySet<string>): boolean => {
  const [, holder, id] = run.split("/");
  return id !== undefined && holder !== undefined && !living.has(holder);
};

/** @param deps.session with the settings of erasures */
export const createErasureRunKeys = (deps: { readonly session: Session }): ErasureRunKeys => {
  const { session } = deps;
  const keys = createJobKeys({ session });
  return {
    remaining: async (runId) =>
      Object.fromEntries(
        await all(
          TABLES,
          async (table) => [table.table, await rowsLeft(session, table, runId, WITH_HIDDEN)] as const,
        ),
      ),
    countRows: async (runId) => {
      const options = { parameters: { run: runId }, settings: WITH_HIDDEN };
      await all(TABLES, (table) => session.command("erasure.count_rows", countOfRows(table), options));
    },
    left: async (alive) => {
      const runs = await session.rows<{ run: string; isOld: 0 | 1 }>(
        "erasure.left",
        `SELECT run_id AS run, min(added_at) < now() - INTERVAL 1 HOUR AS isOld FROM job_keys
          WHERE startsWith(kind, 'erase ') GROUP BY run_id`,
      );
      // Behind the runs: whoever has begun one meanwhile is not in an older answer.
      const living = await alive();
      return runs.filter(({ run, isOld }) => isOld === 1 || isDead(run, living)).map(({ run }) => run);
    },
    end: async (runPrefix, signal, left = []) => {
      const runs = await session.rows<{ run: string }>(
        "erasure.ended",
        `SELECT DISTINCT run_id AS run FROM job_keys
          WHERE startsWith(kind, 'erase ') AND startsWith(run_id, {prefix:String})`,
        { parameters: { prefix: runPrefix }, signal },
      );
      for (const run of new Set([...runs.map((row) => row.run), ...left])) await keys.forget(run);
    },
  };
};
