import type { Session } from "../../session/session.ts";
import type { Deletion } from "../deletion.ts";
import { noteDeleted, type RunUpload } from "../../changes/deletion-entries.ts";
import { eraseSome } from "./forget.ts";
import { createKeyedDeletion } from "./keyed-deletion.ts";
import {
  type ErasureRun,
  IS_RECORD,
  OF_RETENTION,
  parametersOf,
  recordsOf,
  RUN,
  TABLES,
} from "./erasure-keys.ts";
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
  publish(run: ErasureRun, signal: AbortSignal): Promise<void>;
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
  const keyed = createKeyedDeletion({ session, deletion });

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
    eraseKeys: async (run, signal) => {
      for (const [table, isOther] of [
        ["job_keys", "1"],
        ["erasure_keys", `startsWith(request_id, '${OF_RETENTION}')`],
      ] as const) {
        const condition = (isIn: string) => `${isOther} AND (client_id, id) ${isIn}
          (SELECT client_id, id FROM erasure_keys WHERE ${erasedAs("'conversation', 'message', 'end_user_id'")})`;
        await eraseSome(deps, { table, condition, parameters: parametersOf(run) }, signal);
      }
    },
    erase: async (run, tables, signal) => {
      const parameters = parametersOf(run);
      for (const table of TABLES.filter((one) => tables.includes(one.table)))
        await keyed.erase(
          { table: table.table, condition: (isIn) => recordsOf(table, isIn), parameters },
          signal,
        );
    },
    goneEverywhere: (signal) =>
      keyed.onAllReplicas(
        TABLES.map(({ table }) => table),
        signal,
      ),
    publish: (run, signal) => {
      const source = `SELECT client_id, splitByChar(' ', toString(k.kind))[1] AS kind, id, date_created
        FROM erasure_keys AS k WHERE phase = 'deleting' AND k.${IS_RECORD} AND ${RUN}`;
      const what = { name: "erasure.publish", source, parameters: parametersOf(run), signal } as const;
      return runUpload((upload) => noteDeleted(session, what, upload), signal);
    },
  };
};
