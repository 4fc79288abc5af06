import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable } from "./errors.ts";

export type RetryOptions = {
  signal?: AbortSignal | undefined;
  /** Before each pause; `attempt` counts from 1. */
  onRetry?: (error: unknown, attempt: number, delayMs: number) => void;
  initialMs?: number;
  maxMs?: number;
  /** No attempt begins later. */
  deadlineMs?: number;
  retryable?: (error: unknown) => boolean;
};

/** A random half to the whole pause, which doubles with each attempt. */
export const backoffMs = (
  attempt: number,
  { initialMs, maxMs }: { initialMs: number; maxMs: number },
  random: () => number = Math.random,
): number => {
  const full = Math.min(maxMs, initialMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(full * (1 - random() / 2));
};

/** Throws the signal's reason, or the last error when it is final or the pause would pass the deadline. */
export const retry = async <T>(
  operation: (attempt: number) => Promise<T>,
  options: RetryOptions = {},
): Promise<T> => {
  const { signal, onRetry, initialMs = 100, maxMs = 5000, deadlineMs } = options;
  const retryable = options.retryable ?? isRetryable;
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await operation(attempt);
    } catch (error) {
      if (!retryable(error)) throw error;
      const delayMs = backoffMs(attempt, { initialMs, maxMs });
      if (deadlineMs !== undefined && performance.now() - startedAt + delayMs > deadlineMs) throw error;
      signal?.throwIfAborted();
      onRetry?.(error, attempt, delayMs);
      // The next turn throws the reason of an abort.
      await sleep(delayMs, undefined, signal && { signal }).catch(() => undefined);
    }
  }
};
