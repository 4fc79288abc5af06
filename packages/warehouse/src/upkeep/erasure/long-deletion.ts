import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@conversation-export/runtime";
import type { Session } from "../../session/session.ts";
import type { RowSelection } from "../deletion.ts";

const ASK_EVERY_MS = 500;
/** Part of the text of all mutations by keys of erasures. */
const OF_ERASURES = "kind = 'erase ";

/** Deletions by keys of erasures, which may take hours. */
export type LongDeletion = {
  /**
   * Waits for deletions from the table that are under way, however long they take: also for those whose attempt
   * has died.
   *
   * @throws ServiceError `deletion_failing` (retryable) when ClickHouse cannot go on with one; it keeps trying
   */
  settled(table: string, signal: AbortSignal): Promise<void>;
  /** Rewrites the parts that hold the rows. Resolves when no active part has them. */
  erase(rows: RowSelection, signal: AbortSignal): Promise<void>;
};

/** @param deps.session with the settings of erasures */
export const createLongDeletion = ({ session }: { readonly session: Session }): LongDeletion => {
  const { names } = session;

  const settled: LongDeletion["settled"] = async (table, signal) => {
    for (;;) {
      signal.throwIfAborted();
      const running = await session.rows<{ failing: number | boolean }>(
        "erasure.mutations",
        `SELECT latest_fail_reason != '' AS failing FROM ${names.system("mutations")}
          WHERE table = {table:String} AND NOT is_done AND position(command, {mark:String}) > 0`,
        { parameters: { table: names.local(table), mark: OF_ERASURES }, signal },
      );
      if (running.length === 0) return;
      if (running.some(({ failing }) => Boolean(failing))) {
        // Its reason may quote rows.
        throw new ServiceError(
          "deletion_failing",
          `ClickHouse cannot finish a deletion from ${table}: system.mutations tells why`,
          { retryable: true },
        );
      }
      await sleep(ASK_EVERY_MS, undefined, { signal });
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
  };
};
