import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../../session/session.ts";
import type { RowSelection } from "../deletion.ts";
import { deletionsUnderWay } from "../deletions-under-way.ts";
import { all } from "./erasure-keys.ts";

/** Small deletions end at once; the pause doubles up to the longest. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
/** Part of the text of all mutations by keys of erasures. */
const OF_ERASURES = "erasure_keys";

/** Deletions by keys of erasures, which may take hours. */
export type LongDeletion = {
  /**
   * Waits for deletions from the table that are under way, however long they take: also for those whose attempt
   * has died.
   *
   * @throws ServiceError `deletion_failing` (retryable) when ClickHouse cannot go on with one; it keeps trying
   */
  settled(table: string, signal: AbortSignal): Promise<void>;
  /** Rewrites the parts that hold the rows. Resolves when no active part of one replica has them. */
  erase(rows: RowSelection, signal: AbortSignal): Promise<void>;
  /** Waits until all replicas have done the deletions of tables that one of them has done. */
  onAllReplicas(tables: readonly string[], signal: AbortSignal): Promise<void>;
};

/** @param deps.session with the settings of erasures */
export const createLongDeletion = ({ session }: { readonly session: Session }): LongDeletion => {
  const { names } = session;

  const settled: LongDeletion["settled"] = async (table, signal) => {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      signal.throwIfAborted();
      const running = await deletionsUnderWay(session, [table], { mark: OF_ERASURES, signal });
      if (running.length === 0) return;
      if (running.some(({ failing }) => failing)) {
        // Its reason may quote rows.
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
    erase: async ({ table, condition, parameters }, signal) => {
      await session.commandEverywhere(
        "erasure.erase",
        `ALTER TABLE ${names.target(table)} DELETE WHERE ${condition}`,
        {
          parameters,
          // The subqueries read keys of the run, which do not change while it lasts.
          settings: { mutations_sync: "0", allow_nondeterministic_mutations: 1 },
          signal,
        },
      );
      await settled(table, signal);
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
          // Mutations are done in order, so this one ends on each replica behind those that delete.
          session.commandEverywhere(
            "erasure.on_all_replicas",
            `ALTER TABLE ${names.target(table)} DELETE WHERE false`,
            { settings: { mutations_sync: "2" }, signal },
          ),
      );
    },
  };
};
