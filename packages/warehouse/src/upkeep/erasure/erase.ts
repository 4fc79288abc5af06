import { PERSON_KINDS } from "@conversation-export/domain";
import type { Session } from "../../session/session.ts";
import type { Deletion } from "../deletion.ts";
import { noteDeleted, type RunUpload } from "../../changes/deletion-entries.ts";
import { eraseSome } from "./forget.ts";
import { createKeyedDeletion } from "./keyed-deletion.ts";
import {
  type DeletingRun,
  type ErasureRun,
  IS_RECORD,
  OF_ANY_ID,
  OF_ID,
  OF_RETENTION,
  parametersOf,
  recordsOf,
  RUN,
  TABLES,
} from "./erasure-keys.ts";
import {
  ADDED_AT,
  FOUND_LATER,
  LOOKED_AT,
  SLIPPED,
  SUPPRESSION_INSERT_SECONDS,
} from "./suppression-store.ts";

const erasedAs = (kinds: string): string => `phase = 'erased' AND ${kinds} AND ${RUN}`;

/** `session`: by `forErasures`. */
export const createErasureDeletion = (deps: {
  readonly session: Session;
  readonly deletion: Deletion;
  readonly runUpload: RunUpload;
}) => {
  const { session, deletion } = deps;
  const keyed = createKeyedDeletion({ session, deletion });

  return {
    /** Marks findings as looked at; removes ids of persons, whose hashes must be suppressed already. */
    settleFound: async (run: ErasureRun, signal: AbortSignal): Promise<void> => {
      const parameters = parametersOf(run);
      await session.command(
        "erasure.looked_at",
        `INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id, added_at)
          SELECT client_id, toString(kind), id, toUnixTimestamp64Micro(max(created_before)), max(created_before), '${LOOKED_AT}',
            ${ADDED_AT}
          FROM erasure_keys WHERE ${erasedAs(OF_ID)} AND (client_id, toString(kind), id) GLOBAL IN
            (SELECT client_id, toString(kind), value FROM suppressions
              WHERE ${OF_ID} AND (request_id = '${FOUND_LATER}' OR ${SLIPPED}))
          GROUP BY client_id, kind, id`,
        { parameters, settings: { max_execution_time: SUPPRESSION_INSERT_SECONDS } },
      );
      for (const { kind, idNames } of PERSON_KINDS) {
        const condition = (isIn: string) => `kind = '${kind}' AND (client_id, value, created_before) ${isIn}
        (SELECT client_id, id, created_before FROM erasure_keys WHERE ${erasedAs(`kind = '${idNames}'`)})`;
        await eraseSome(deps, { table: "suppressions", condition, parameters }, signal);
      }
    },
    /** From the keys of other jobs. */
    eraseKeys: async (run: ErasureRun, signal: AbortSignal): Promise<void> => {
      for (const [table, isOther] of [
        ["job_keys", "1"],
        ["erasure_keys", `startsWith(request_id, '${OF_RETENTION}')`],
      ] as const) {
        const condition = (isIn: string) => `${isOther} AND (client_id, id) ${isIn}
          (SELECT client_id, id FROM erasure_keys WHERE ${erasedAs(OF_ANY_ID)})`;
        await eraseSome(deps, { table, condition, parameters: parametersOf(run) }, signal);
      }
    },
    erase: async (run: DeletingRun, tables: readonly string[], signal: AbortSignal): Promise<void> => {
      const parameters = parametersOf(run);
      for (const table of TABLES.filter((one) => tables.includes(one.table)))
        await keyed.erase(
          { table: table.table, condition: (isIn) => recordsOf(table, isIn), parameters },
          signal,
        );
    },
    goneEverywhere: (signal: AbortSignal): Promise<void> =>
      keyed.onAllReplicas(
        TABLES.map(({ table }) => table),
        signal,
      ),
    /** The rows must be gone. */
    publish: (run: ErasureRun, signal: AbortSignal): Promise<void> => {
      const source = `SELECT client_id, splitByChar(' ', toString(k.kind))[1] AS kind, id, date_created
        FROM erasure_keys AS k WHERE phase = 'deleting' AND k.${IS_RECORD} AND ${RUN}`;
      return noteDeleted(deps, { name: "erasure.publish", source, parameters: parametersOf(run), signal });
    },
  };
};
