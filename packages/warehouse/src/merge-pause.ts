import { isRetryable, retry } from "@conversation-export/runtime";
import { clusterNames } from "./cluster-names.ts";
import type { EveryServer } from "./every-server.ts";
import type { Topology } from "./migration-template.ts";
import { isSetupError, toWarehouseError } from "./warehouse-error.ts";

const ANSWER_MS = 10_000;

/** Holds the merges and mutations of tables for a moment. Not for two at a time. */
export type MergePause = {
  /**
   * Runs `work` while nothing is merged or mutated in these tables. Lets merges go on whatever happens, and for that
   * waits for ClickHouse as long as it takes; when `work` fails, `undo` is run first.
   */
  during(tables: readonly string[], work: () => Promise<void>, undo: () => Promise<void>): Promise<void>;
  /** Lets merges go on. */
  release(tables: readonly string[]): Promise<void>;
};

const mayPass = (error: unknown): boolean => isRetryable(error) && !isSetupError(error);

/** @param deps.signal ends the waiting for ClickHouse */
export function createMergePause(deps: {
  readonly servers: EveryServer;
  readonly topology: Topology;
  readonly signal: AbortSignal;
}): MergePause {
  const { servers, signal } = deps;
  const { local, on } = clusterNames(deps.topology);

  const say = async (verb: "STOP" | "START", table: string): Promise<void> => {
    try {
      await servers.command({
        query: `SYSTEM ${verb} MERGES ${on} ${local(table)}`,
        abort_signal: AbortSignal.timeout(ANSWER_MS),
      });
    } catch (error) {
      throw toWarehouseError(error);
    }
  };

  /** Each table, also when another one is refused. */
  const release = async (tables: readonly string[]): Promise<void> => {
    const released = await Promise.allSettled(
      tables.map((table) => retry(() => say("START", table), { signal, maxMs: 1_000, retryable: mayPass })),
    );
    for (const one of released) if (one.status === "rejected") throw one.reason;
  };

  return {
    release,
    during: async (tables, work, undo) => {
      try {
        try {
          for (const table of tables) await say("STOP", table);
          await work();
        } catch (error) {
          await undo();
          throw error;
        }
      } finally {
        await release(tables);
      }
    },
  };
}
