import type { ClickHouseSettings } from "@clickhouse/client";
import type { Session } from "../../session/session.ts";
import { type Deletion, WITH_HIDDEN } from "../deletion.ts";
import { all, countOf, recordsOf, type Table, TABLES } from "./erasure-keys.ts";

/** What the keys of a run stand for, and their end. */
export type ErasureRunKeys = {
  /** Rows left by table, including masked ones that are still stored. */
  remaining(runId: string): Promise<Readonly<Record<string, number>>>;
  /**
   * Removes the keys of all runs that begin with `runPrefix`, and with `left` of those older than an hour, which
   * have died: only after `tell`, which needs them.
   */
  end(runPrefix: string, signal: AbortSignal, left: boolean): Promise<void>;
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

/** @param deps.session with the settings of erasures */
export const createErasureRunKeys = (deps: {
  readonly session: Session;
  readonly deletion: Pick<Deletion, "erase">;
}): ErasureRunKeys => {
  const { session, deletion } = deps;
  return {
    remaining: async (runId) =>
      Object.fromEntries(
        await all(
          TABLES,
          async (table) => [table.table, await rowsLeft(session, table, runId, WITH_HIDDEN)] as const,
        ),
      ),
    end: async (runPrefix, signal, left) => {
      const condition = `startsWith(kind, 'erase ')
        AND (startsWith(run_id, {prefix:String})${left ? " OR added_at < now() - INTERVAL 1 HOUR" : ""})`;
      const parameters = { prefix: runPrefix };
      const sql = `SELECT toString(count()) AS rows FROM job_keys WHERE ${condition}`;
      if (countOf(await session.rows("erasure.count_ended", sql, { parameters })) > 0)
        await deletion.erase({ table: "job_keys", condition, parameters }, signal);
    },
  };
};
