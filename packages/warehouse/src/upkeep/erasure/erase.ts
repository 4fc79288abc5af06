import type { Session } from "../../session/session.ts";
import { type Deletion, WITH_HIDDEN } from "../deletion.ts";
import { noteDeleted, type RunUpload } from "../../changes/deletion-entries.ts";
import { createLongDeletion } from "./long-deletion.ts";
import { rowsLeft } from "./run-keys.ts";
import {
  countOf,
  KIND,
  LANDED,
  limitsOf,
  recordKind,
  recordsOf,
  RUN,
  type Table,
  TABLES,
} from "./erasure-keys.ts";
import { FOUND_LATER, LOOKED_AT, SLIPPED, SUPPRESSION_INSERT_SECONDS } from "./suppression-store.ts";

/** Deletes the collected records of a run. */
export type ErasureDeletion = {
  /**
   * Marks the findings of writers from before the run as looked at. Removes the ids of end users among them,
   * whose hashes must already be stored as suppressions.
   */
  settleFound(runId: string, signal: AbortSignal): Promise<void>;
  /** Removes the collected ids from the keys of all other jobs. */
  eraseKeys(runId: string, signal: AbortSignal): Promise<void>;
  /** Deletes all rows of the collected keys from all active parts. */
  erase(runId: string, tables: readonly string[], signal: AbortSignal): Promise<void>;
  /** Waits until the rows that one replica has deleted are gone from all. */
  goneEverywhere(signal: AbortSignal): Promise<void>;
  /**
   * Tells readers of changes about all records with collected keys, also of runs that died, if they came as
   * far as to suppress or delete. Their rows must be gone.
   */
  tell(signal: AbortSignal): Promise<void>;
};

/**
 * @param deps.session with the settings of erasures
 * @param deps.deletion of the user for jobs
 */
export const createErasureDeletion = (deps: {
  readonly session: Session;
  readonly deletion: Deletion;
  readonly runUpload: RunUpload;
}): ErasureDeletion => {
  const { session, deletion, runUpload } = deps;
  const long = createLongDeletion({ session });

  /** A deletion does not find masked rows, so their parts are rewritten without them. */
  const dropHidden = async (table: Table, run: string): Promise<void> => {
    const sql = `SELECT DISTINCT _partition_id AS id FROM ${table.table} WHERE ${recordsOf(table)}`;
    const options = { parameters: { run }, settings: WITH_HIDDEN };
    for (const { id } of await session.rows<{ id: string }>("erasure.hidden", sql, options)) {
      await deletion.dropMasked(table.table, id);
    }
  };

  return {
    settleFound: async (runId, signal) => {
      const keys = `SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind = '${KIND.subject}'`;
      const endUsers = `kind = 'end_user' AND (client_id, concat('end_user_id:', value))`;
      const parameters = { run: runId };
      for (const kind of ["conversation", "message"] as const) {
        await session.command(
          "erasure.looked_at",
          `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
            SELECT client_id, '${kind}', id, toUnixTimestamp64Micro(created_before), created_before, '${LOOKED_AT}'
            FROM ${limitsOf(KIND[kind])} WHERE (client_id, id) GLOBAL IN
              (SELECT client_id, value FROM suppressions WHERE kind = '${kind}'
                AND (request_id = '${FOUND_LATER}' OR ${SLIPPED}))`,
          { parameters, settings: { max_execution_time: SUPPRESSION_INSERT_SECONDS } },
        );
      }
      const sql = `SELECT toString(count()) AS rows FROM suppressions WHERE ${endUsers} GLOBAL IN (${keys})`;
      if (countOf(await session.rows("erasure.count_end_users", sql, { parameters })) === 0) return;
      await deletion.erase(
        { table: "suppressions", condition: `${endUsers} IN (${keys})`, parameters },
        signal,
      );
    },
    eraseKeys: async (runId, signal) => {
      // Not the keys of erasures: this statement reads them.
      const others = "NOT startsWith(kind, 'erase ')";
      const ofKinds = (...kinds: readonly string[]): string =>
        `(SELECT client_id, id FROM job_keys WHERE ${RUN} AND kind IN ('${kinds.join("', '")}'))`;
      const condition = `${others} AND ((client_id, id) IN ${ofKinds(KIND.conversation, KIND.message)}
        OR (client_id, concat('end_user_id:', id)) IN ${ofKinds(KIND.subject)})`;
      const parameters = { run: runId };
      const sql = `SELECT toString(count()) AS rows FROM job_keys WHERE ${condition.replaceAll(" IN (SELECT", " GLOBAL IN (SELECT")}`;
      if (countOf(await session.rows("erasure.count_keys", sql, { parameters })) > 0)
        await deletion.erase({ table: "job_keys", condition, parameters }, signal);
    },
    erase: async (runId, tables, signal) => {
      for (const table of TABLES) {
        if (!tables.includes(table.table)) continue;
        signal.throwIfAborted();
        const condition = recordsOf(table).replaceAll("GLOBAL IN", "IN");
        await long.settled(table.table, signal);
        if ((await rowsLeft(session, table, runId)) > 0)
          await long.erase({ table: table.table, condition, parameters: { run: runId } }, signal);
        await dropHidden(table, runId);
      }
    },
    goneEverywhere: (signal) =>
      long.onAllReplicas(
        TABLES.map(({ table }) => table),
        signal,
      ),
    tell: (signal) => {
      const kinds = LANDED.map((kind) => `'${recordKind(kind)}'`).join();
      const source = `SELECT client_id, splitByChar(' ', k.kind)[2] AS kind, id, date_created
        FROM job_keys AS k WHERE k.kind IN (${kinds}) AND k.run_id GLOBAL IN
          (SELECT run_id FROM job_keys WHERE kind IN ('${KIND.hashed}', '${KIND.counted}'))`;
      return runUpload(
        (upload) => noteDeleted(session, { name: "erasure.tell", source, signal }, upload),
        signal,
      );
    },
  };
};
