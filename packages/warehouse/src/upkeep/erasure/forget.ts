import { UNFINISHED } from "../../access/request-rows.ts";
import type { Session } from "../../session/session.ts";
import type { Deletion } from "../deletion.ts";
import { countOf, type ErasureRun, IS_OWN, OF_RUN, parametersOf } from "./erasure-keys.ts";
import type { KeyedRows } from "./keyed-deletion.ts";

type Deps = { readonly session: Session; readonly deletion: Pick<Deletion, "erase"> };

export const eraseSome = async (
  { session, deletion }: Deps,
  { table, condition, parameters = {} }: KeyedRows,
  signal: AbortSignal,
): Promise<void> => {
  const sql = `SELECT toString(count()) AS rows FROM ${table} WHERE ${condition("GLOBAL IN")}`;
  if (countOf(await session.rows("erasure.count_some", sql, { parameters })) > 0)
    await deletion.erase({ table, condition: condition("IN"), parameters }, signal);
};

/** `session`: by `forErasures`. */
export const createErasureEnd = (deps: Deps) => ({
  /** Keys of ended requests, of the run's own, and of what a dead run did not begin. */
  forget: async (run: ErasureRun, signal: AbortSignal): Promise<void> => {
    const rows = await deps.session.rows<{ id: string }>(
      "erasure.own_requests",
      `SELECT DISTINCT request_id AS id FROM ${OF_RUN} WHERE ${IS_OWN}`,
      { parameters: parametersOf(run) },
    );
    // A replica that does not know a request yet keeps what it covers.
    const condition = (isIn: string): string => `(request_id IN {own:Array(String)}
      OR phase != 'erased' AND ${IS_OWN} AND added_at < now() - INTERVAL 1 DAY
        AND NOT ((client_id, request_id) ${isIn} (SELECT DISTINCT client_id, request_id FROM erasure_keys WHERE phase = 'erased' AND ${IS_OWN}))
      OR phase = 'found' AND kind = 'run' AND added_at < now() - INTERVAL 2 DAY
      OR (client_id, request_id) ${isIn} (SELECT client_id, request_id
        FROM data_subject_requests FINAL WHERE NOT (${UNFINISHED})))`;
    const parameters = { own: rows.map(({ id }) => id) };
    await eraseSome(deps, { table: "erasure_keys", condition, parameters }, signal);
  },
});
