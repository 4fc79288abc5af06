import { ExportApiError, isTransient } from "./errors.ts";

export type RetryOptions = {
  /** Without progress between them; 8 by default. */
  readonly attempts?: number;
  /** Default 300,000; a longer `Retry-After` throws at once. */
  readonly maxWaitMs?: number;
  /** Limit of the first random wait, 500 by default; doubles each time. */
  readonly firstWaitMs?: number;
  readonly onRetry?: (retry: RetryNote) => void;
};

export type RetryNote = {
  readonly error: Error;
  /** The next attempt's number. */
  readonly attempt: number;
  readonly attempts: number;
  readonly waitMs: number;
};

export type Retry = {
  /** @throws `error` when no repeat is left */
  wait(error: unknown, failures: number): Promise<void>;
};

/** Spreads clients with the same `Retry-After`. */
const JITTER_AFTER_MS = 1_000;

export const createRetry = (
  { attempts = 8, maxWaitMs = 300_000, firstWaitMs = 500, onRetry }: RetryOptions = {},
  signal: AbortSignal | undefined,
): Retry => ({
  wait: async (error, failures) => {
    if (!isTransient(error) || failures >= attempts) throw error;
    const asked = error instanceof ExportApiError ? error.retryAfterMs : null;
    if (asked !== null && asked > maxWaitMs) throw error;
    const bound = Math.min(maxWaitMs, firstWaitMs * 2 ** (failures - 1));
    const waitMs = asked === null ? Math.random() * bound : asked + Math.random() * JITTER_AFTER_MS;
    onRetry?.({ error: error as Error, attempt: failures + 1, attempts, waitMs });
    await sleep(waitMs, signal);
  },
});

/** Rejects with the signal's reason. */
const sleep = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
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
