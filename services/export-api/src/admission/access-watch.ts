import { retry } from "@conversation-export/runtime";

/** Whether the key of a request may still do what the request began with. */
export type AccessWatch = {
  /** Aborts, with the error to answer with, when the key is found to be no longer allowed. */
  readonly lost: AbortSignal;
  /** @throws ApiError when the key is no longer allowed */
  check(): Promise<void>;
  end(): void;
};

/** A key whose look-ups fail for longer counts as lost, as for a new request. */
const ASK_WITHIN_MS = 15_000;

/**
 * Asks whether a key is still allowed, every `everyMs` and by `check`.
 *
 * @param deps.ask throws an ApiError when the key is no longer allowed; `fresh`: not by an answer that is cached
 */
export const watchAccess = (deps: {
  readonly ask: (fresh: boolean) => Promise<void>;
  readonly everyMs: number;
}): AccessWatch => {
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
