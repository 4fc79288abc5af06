import { ExportApiError, isTransient } from "./errors.ts";

export type RetryOptions = {
  /** Attempts without any progress between them, the first included; 8 by default. */
  readonly attempts?: number;
  /** The longest single wait, ms; 5 minutes by default. A longer `Retry-After` is an error at once. */
  readonly maxWaitMs?: number;
  /** The bound of the first random wait, ms; 500 by default. It doubles with each attempt. */
  readonly firstWaitMs?: number;
  /** Called before each wait. */
  readonly onRetry?: (retry: RetryNote) => void;
};

export type RetryNote = {
  readonly error: Error;
  /** The number of the next attempt, of so many. */
  readonly attempt: number;
  readonly attempts: number;
  readonly waitMs: number;
};

export type Retry = {
  /** Waits before the next attempt. @throws `error` itself when there must be none */
  wait(error: unknown, failures: number): Promise<void>;
};

export type RetryDeps = {
  /** 0 to 1, 1 excluded. */
  readonly random: () => number;
  /** Rejects with the reason of the signal when it aborts. */
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  readonly signal: AbortSignal | undefined;
};

/** Spreads clients that were all told the same second. */
const JITTER_AFTER_MS = 1_000;

/** Decides how long to wait after an error: as told, else with full jitter (a random part of a doubling bound). */
export const createRetry = (
  { attempts = 8, maxWaitMs = 300_000, firstWaitMs = 500, onRetry }: RetryOptions,
  { random, sleep, signal }: RetryDeps,
): Retry => ({
  wait: async (error, failures) => {
    if (!isTransient(error) || failures >= attempts) throw error;
    const asked = error instanceof ExportApiError ? error.retryAfterMs : null;
    if (asked !== null && asked > maxWaitMs) throw error;
    const bound = Math.min(maxWaitMs, firstWaitMs * 2 ** (failures - 1));
    const waitMs = asked === null ? random() * bound : asked + random() * JITTER_AFTER_MS;
    onRetry?.({ error: error as Error, attempt: failures + 1, attempts, waitMs });
    await sleep(waitMs, signal);
  },
});

/** Waits; rejects with the reason of the signal when it aborts. */
export const sleep = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });

export const reasonOf = (signal: AbortSignal | undefined): Error => {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(`aborted: ${String(reason)}`);
};
