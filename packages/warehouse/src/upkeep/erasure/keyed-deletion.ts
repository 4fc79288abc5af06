import type { Session } from "../../session/session.ts";
import { type Deletion, type RowSelection, WITH_HIDDEN } from "../deletion.ts";
import { countOf } from "./erasure-keys.ts";
import { createLongDeletion, type LongDeletion } from "./long-deletion.ts";

/** `condition`: SQL with `isIn` before each subquery. */
export type KeyedRows = Omit<RowSelection, "condition"> & {
  readonly condition: (isIn: "IN" | "GLOBAL IN") => string;
};

export type KeyedDeletion = Pick<LongDeletion, "onAllReplicas" | "settled"> & {
  /** Also masked rows; waits for other deletions by such keys. */
  erase(rows: KeyedRows, signal: AbortSignal): Promise<void>;
};

/** `session`: by `forErasures`. */
export const createKeyedDeletion = (deps: {
  readonly session: Session;
  readonly deletion: Pick<Deletion, "dropMasked">;
}): KeyedDeletion => {
  const { session, deletion } = deps;
  const long = createLongDeletion({ session });

  return {
    onAllReplicas: long.onAllReplicas,
    settled: long.settled,
    erase: async ({ table, condition, parameters = {} }, signal) => {
      signal.throwIfAborted();
      await long.settled(table, signal);
      const from = `FROM ${table} WHERE ${condition("GLOBAL IN")}`;
      const sql = `SELECT toString(count()) AS rows ${from}`;
      if (countOf(await session.rows("erasure.count_left", sql, { parameters, signal })) > 0)
        await long.erase({ table, condition: condition("IN"), parameters }, signal);
      // A deletion does not find masked rows.
      const options = { parameters, settings: WITH_HIDDEN, signal };
      const partitions = `SELECT DISTINCT _partition_id AS id ${from}`;
      for (const { id } of await session.rows<{ id: string }>("erasure.hidden", partitions, options))
        await deletion.dropMasked(table, id, signal);
    },
  };
};
