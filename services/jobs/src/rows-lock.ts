import type { Exclusive } from "@conversation-export/queue";
import { type Logger, retry } from "@conversation-export/runtime";
import type { RowReplacer } from "@conversation-export/warehouse";

/** Who deletes single rows of records does so alone: what one leaves because of another row, nobody else may remove. */
export const ROWS = "rows";

const PAUSE_MS = 30_000;

/** The locks of all processes; whoever gets that of the rows first gives up what a process left that died under it. */
export type RowsLock = Exclusive & {
  /** Begins to let merges go on that a process held which has died, for as long as it takes, and returns at once. */
  start(): void;
  stop(): void;
};

export const createRowsLock = (deps: {
  readonly exclusive: Exclusive;
  readonly replacer: Pick<RowReplacer, "start" | "recover">;
  readonly log: Logger;
}): RowsLock => {
  const { exclusive, replacer, log } = deps;
  const stopping = new AbortController();
  let isReleased = false;

  const giveUp = async (): Promise<void> => {
    if (isReleased) return replacer.recover();
    await replacer.start();
    isReleased = true;
  };

  const run: Exclusive["run"] = (name, signal, work) =>
    exclusive.run(name, signal, async (held) => {
      if (name === ROWS) await giveUp();
      held.throwIfAborted();
      return work(held);
    });

  return {
    run,
    start: () => {
      const { signal } = stopping;
      const released = retry(() => run(ROWS, signal, () => Promise.resolve()), {
        signal,
        maxMs: PAUSE_MS,
        // A grant may come while the process runs.
        retryable: () => true,
        onRetry: (error, attempt) =>
          log.warn(
            { err: error, attempt },
            "merges that may be held cannot be let go on, will be tried again",
          ),
      });
      released.catch(() => {});
    },
    stop: () => stopping.abort(),
  };
};
