import type { Exclusive } from "@conversation-export/queue";
import { type Logger, retry } from "@conversation-export/runtime";
import type { RowReplacer } from "@conversation-export/warehouse";

/**
 * Lock of deleting single rows: a job keeps a row because of another one, which nobody else may remove
 * meanwhile.
 */
export const ROWS = "rows";
/** Lock of the ledger of upload windows, whose lines are read, changed and saved. */
export const LEDGER = "windows";

const PAUSE_MS = 30_000;

/**
 * Locks over all processes. Taking `ROWS` first ends what a process left that died under it: held merges,
 * deletions.
 */
export type Locks = Exclusive & {
  /** Begins to resume merges that a dead process held, retries until that succeeds, and returns at once. */
  start(): void;
  stop(): void;
};

export const createLocks = (deps: {
  readonly exclusive: Exclusive;
  readonly replacer: Pick<RowReplacer, "start" | "recover">;
  readonly log: Logger;
}): Locks => {
  const { exclusive, replacer, log } = deps;
  const stopping = new AbortController();
  let isStarted = false;

  const clearLeftovers = async (): Promise<void> => {
    if (isStarted) return replacer.recover();
    await replacer.start();
    isStarted = true;
  };

  const run: Exclusive["run"] = (name, signal, work) =>
    exclusive.run(name, signal, async (held) => {
      if (name === ROWS) await clearLeftovers();
      held.throwIfAborted();
      return work(held);
    });

  return {
    run,
    start: () => {
      const { signal } = stopping;
      const resumed = retry(() => run(ROWS, signal, () => Promise.resolve()), {
        signal,
        maxMs: PAUSE_MS,
        // A missing grant may be given while the process runs.
        retryable: () => true,
        onRetry: (error, attempt) =>
          log.warn({ err: error, attempt }, "held merges cannot be resumed, will be tried again"),
      });
      resumed.catch(() => {});
    },
    stop: () => stopping.abort(),
  };
};
