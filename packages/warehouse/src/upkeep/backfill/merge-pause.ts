import { isRetryable, retry } from "@conversation-export/runtime";
import type { Session } from "../../session/session.ts";
import { isSetupError } from "../../session/warehouse-error.ts";

const ANSWER_MS = 10_000;

/** Pauses the merges and mutations of tables for a moment. Only one caller at a time may use it. */
export type MergePause = {
  /**
   * Runs `work` while merges and mutations of these tables are paused, then always resumes them, waiting for
   * ClickHouse as long as necessary. When `work` fails, runs `undo` before resuming.
   */
  during(tables: readonly string[], work: () => Promise<void>, undo: () => Promise<void>): Promise<void>;
  /** Resumes merges. */
  release(tables: readonly string[]): Promise<void>;
};

/** Errors other than missing grants or tables, which only an operator can fix. */
const mayPass = (error: unknown): boolean => isRetryable(error) && !isSetupError(error);

/** @param deps.signal ends the wait for ClickHouse */
export function createMergePause(deps: {
  readonly session: Session;
  readonly signal: AbortSignal;
}): MergePause {
  const { signal } = deps;
  const session = deps.session.with({ timeoutMs: ANSWER_MS });
  const { local, on } = session.names;

  const say = (verb: "STOP" | "START", table: string): Promise<void> =>
    session.commandEverywhere(
      verb === "STOP" ? "merges.stop" : "merges.start",
      `SYSTEM ${verb} MERGES ${on} ${local(table)}`,
    );

  /** Resumes merges of every table, even if one fails; then throws the first error. */
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
