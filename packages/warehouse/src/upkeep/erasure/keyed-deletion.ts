import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../../session/session.ts";
import { type Deletion, type RowSelection, WITH_HIDDEN } from "../deletion.ts";
import { deletionsUnderWay } from "../deletions-under-way.ts";
import { all, countOf } from "./erasure-keys.ts";

/** `condition`: SQL with `isIn` before each subquery. */
export type KeyedRows = Omit<RowSelection, "condition"> & {
  readonly condition: (isIn: "IN" | "GLOBAL IN") => string;
};

export type KeyedDeletion = {
  /** Also deletions of dead attempts. @throws ServiceError `deletion_failing` (retryable) */
  settled(table: string, signal: AbortSignal): Promise<void>;
  /** Also masked rows; waits for other deletions by such keys. Resolves when one replica is done. */
  erase(rows: KeyedRows, signal: AbortSignal): Promise<void>;
  /** Waits for all replicas to do what one has done. */
  onAllReplicas(tables: readonly string[], signal: AbortSignal): Promise<void>;
};

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
/** All mutations by keys of erasures contain it. */
const OF_ERASURES = "erasure_keys";

/** `session`: by `forErasures`. */
export const createKeyedDeletion = (deps: {
  readonly session: Session;
  readonly deletion: Pick<Deletion, "dropMasked">;
}): KeyedDeletion => {
  const { session, deletion } = deps;
  const { names } = session;

  const settled: KeyedDeletion["settled"] = async (table, signal) => {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      signal.throwIfAborted();
      const running = await deletionsUnderWay(session, [table], { mark: OF_ERASURES, signal });
      if (running.length === 0) return;
      if (running.some(({ failing }) => failing)) {
        // Without the reason, which may quote rows.
        throw new ServiceError(
          "deletion_failing",
          `ClickHouse cannot finish a deletion from ${table}: system.mutations says why`,
          { retryable: true },
        );
      }
      await sleep(pause, undefined, { signal });
    }
  };

  return {
    settled,
    erase: async ({ table, condition, parameters = {} }, signal) => {
      await settled(table, signal);
      const from = `FROM ${table} WHERE ${condition("GLOBAL IN")}`;
      const sql = `SELECT toString(count()) AS rows ${from}`;
      if (countOf(await session.rows("erasure.count_left", sql, { parameters, signal })) > 0) {
        await session.commandEverywhere(
          "erasure.erase",
          `ALTER TABLE ${names.target(table)} DELETE WHERE ${condition("IN")}`,
          {
            parameters,
            // For subqueries: keys of the run do not change, and new rows only keep more.
            settings: { mutations_sync: "0", allow_nondeterministic_mutations: 1 },
            signal,
          },
        );
        await settled(table, signal);
      }
      // A deletion does not find masked rows.
      const options = { parameters, settings: WITH_HIDDEN, signal };
      const partitions = `SELECT DISTINCT _partition_id AS id ${from}`;
      for (const { id } of await session.rows<{ id: string }>("erasure.hidden", partitions, options))
        await deletion.dropMasked(table, id, signal);
    },
    onAllReplicas: async (tables, signal) => {
      const replicated = await session.rows<{ name: string }>(
        "erasure.replicated",
        `SELECT name FROM system.tables WHERE database = currentDatabase() AND name IN {tables:Array(String)}
          AND match(engine, '^(Replicated|Shared)')`,
        { parameters: { tables: tables.map((table) => names.local(table)) }, signal },
      );
      const isReplicated = new Set(replicated.map(({ name }) => name));
      await all(
        tables.filter((table) => isReplicated.has(names.local(table))),
        (table) =>
          // Mutations are done in order: this one ends after those that delete.
          session.commandEverywhere(
            "erasure.on_all_replicas",
            `ALTER TABLE ${names.target(table)} DELETE WHERE false`,
            { settings: { mutations_sync: "2" }, signal },
          ),
      );
    },
  };
};
