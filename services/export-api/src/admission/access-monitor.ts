import { retry } from "@conversation-export/runtime";

export type AccessMonitor = {
  readonly lost: AbortSignal;
  /** @throws ApiError once the key is no longer allowed */
  check(): Promise<void>;
  end(): void;
};

/** If look-ups fail for this long, the key counts as lost, as for a new request. */
const ASK_WITHIN_MS = 15_000;

/** `ask` throws an ApiError when the key is no longer allowed; `fresh` bypasses caches. */
export const monitorAccess = (deps: {
  readonly ask: (fresh: boolean) => Promise<void>;
  readonly everyMs: number;
}): AccessMonitor => {
  const { ask, everyMs } = deps;
  const lost = new AbortController();
  const ended = new AbortController();

  const askAgain = async (fresh: boolean): Promise<void> => {
    try {
      await retry(() => ask(fresh), { signal: ended.signal, deadlineMs: ASK_WITHIN_MS });
    } catch (error) {
      if (!ended.signal.aborted) lost.abort(error);
    }
  };
  const timer = setInterval(() => void askAgain(true), everyMs);
  timer.unref();
  return {
    lost: lost.signal,
    check: async () => {
      lost.signal.throwIfAborted();
      await askAgain(false);
      lost.signal.throwIfAborted();
    },
    end: () => {
      clearInterval(timer);
      ended.abort();
    },
  };
};
