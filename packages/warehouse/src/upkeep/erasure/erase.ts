import type { Session } from "../../session/session.ts";
import { type Deletion, WITH_HIDDEN } from "../deletion.ts";
import { noteDeleted, type RunUpload } from "../../changes/deletion-entries.ts";
import { eraseSome } from "./forget.ts";
import { createLongDeletion } from "./long-deletion.ts";
import {
  type ErasureRun,
  IS_RECORD,
  parametersOf,
  recordsOf,
  RUN,
  type Table,
  TABLES,
} from "./erasure-keys.ts";
import { rowsLeft } from "./row-counts.ts";
import { FOUND_LATER, LOOKED_AT, SLIPPED, SUPPRESSION_INSERT_SECONDS } from "./suppression-store.ts";

/** SQL for what readers leave out for the run. */
const erasedAs = (kinds: string): string => `phase = 'erased' AND kind IN (${kinds}) AND ${RUN}`;

/** Deletes the collected records of a run. */
export type ErasureDeletion = {
  /**
   * Marks the findings of writers from before the run as looked at. Removes the ids of end users among them,
   * whose hashes must already be stored as suppressions.
   */
  settleFound(run: ErasureRun, signal: AbortSignal): Promise<void>;
  /** Removes the ids that readers leave out for the run from the keys of other jobs. */
  eraseKeys(run: ErasureRun, signal: AbortSignal): Promise<void>;
  /** Deletes all rows of the collected keys from all active parts. */
  erase(run: ErasureRun, tables: readonly string[], signal: AbortSignal): Promise<void>;
  /** Waits until the rows that one replica has deleted are gone from all. */
  goneEverywhere(signal: AbortSignal): Promise<void>;
  /** Publishes the deletion of the run's records to readers of changes. Their rows must be gone. */
  tell(run: ErasureRun, signal: AbortSignal): Promise<void>;
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
  const dropHidden = async (table: Table, run: ErasureRun): Promise<void> => {
    const sql = `SELECT DISTINCT _partition_id AS id FROM ${table.table} WHERE ${recordsOf(table)}`;
    const options = { parameters: parametersOf(run), settings: WITH_HIDDEN };
    for (const { id } of await session.rows<{ id: string }>("erasure.hidden", sql, options)) {
      await deletion.dropMasked(table.table, id);
    }
  };

  return {
    settleFound: async (run, signal) => {
      const parameters = parametersOf(run);
      await session.command(
        "erasure.looked_at",
        `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
          SELECT client_id, toString(kind), id, toUnixTimestamp64Micro(max(created_before)), max(created_before), '${LOOKED_AT}'
          FROM erasure_keys WHERE ${erasedAs("'conversation', 'message'")} AND (client_id, toString(kind), id) GLOBAL IN
            (SELECT client_id, toString(kind), value FROM suppressions
              WHERE kind IN ('conversation', 'message') AND (request_id = '${FOUND_LATER}' OR ${SLIPPED}))
          GROUP BY client_id, kind, id`,
        { parameters, settings: { max_execution_time: SUPPRESSION_INSERT_SECONDS } },
      );
      const condition = (isIn: string) => `kind = 'end_user' AND (client_id, value) ${isIn}
        (SELECT client_id, id FROM erasure_keys WHERE ${erasedAs("'end_user_id'")})`;
      await eraseSome(deps, { table: "suppressions", condition, parameters }, signal);
    },
    eraseKeys: (run, signal) => {
      const condition = (isIn: string) => `(client_id, id) ${isIn}
        (SELECT client_id, id FROM erasure_keys WHERE ${erasedAs("'conversation', 'message', 'end_user_id'")})`;
      return eraseSome(deps, { table: "job_keys", condition, parameters: parametersOf(run) }, signal);
    },
    erase: async (run, tables, signal) => {
      const parameters = parametersOf(run);
      for (const table of TABLES) {
        if (!tables.includes(table.table)) continue;
        signal.throwIfAborted();
        await long.settled(table.table, signal);
        if ((await rowsLeft(session, table, run)) > 0)
          await long.erase({ table: table.table, condition: recordsOf(table, "IN"), parameters }, signal);
        await dropHidden(table, run);
      }
    },
    goneEverywhere: (signal) =>
      long.onAllReplicas(
        TABLES.map(({ table }) => table),
        signal,
      ),
    tell: (run, signal) => {
      const source = `SELECT client_id, splitByChar(' ', toString(k.kind))[1] AS kind, id, date_created
        FROM erasure_keys AS k WHERE phase = 'deleting' AND k.${IS_RECORD} AND ${RUN}`;
      const what = { name: "erasure.tell", source, parameters: parametersOf(run), signal } as const;
      return runUpload((upload) => noteDeleted(session, what, upload), signal);
    },
  };
};
