import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable } from "./errors.ts";

export type RetryOptions = {
  /** Ends the pause; the signal's reason is thrown. */
  signal?: AbortSignal | undefined;
  /** Called before each pause. `attempt` counts from 1. */
  onRetry?: (error: unknown, attempt: number, delayMs: number) => void;
  initialMs?: number;
  maxMs?: number;
  /** Random share of the pause, 0 to 1. */
  jitter?: number;
  /** No attempt begins after this many milliseconds. Absent: no deadline. */
  deadlineMs?: number;
  retryable?: (error: unknown) => boolean;
};

/** The pause after attempt `attempt`: doubles from `initialMs` to `maxMs`, less a random share. */
export const backoffMs = (
  attempt: number,
  options: { initialMs: number; maxMs: number; jitter: number },
  random: () => number = Math.random,
): number => {
  const full = Math.min(options.maxMs, options.initialMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(full * (1 - options.jitter * random()));
};

/**
 * Calls the operation until it succeeds.
 * @throws its last error when that is not retryable (default: `isRetryable`) or the deadline would pass
 * during the pause
 * @throws the signal's reason when aborted
 */
export const retry = async <T>(
  operation: (attempt: number) => Promise<T>,
  options: RetryOptions = {},
): Promise<T> => {
  const { signal, onRetry, initialMs = 100, maxMs = 5000, jitter = 0.5, deadlineMs } = options;
  const retryable = options.retryable ?? isRetryable;
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await operation(attempt);
    } catch (error) {
      if (!retryable(error)) throw error;
      const delayMs = backoffMs(attempt, { initialMs, maxMs, jitter });
      if (deadlineMs !== undefined && performance.now() - startedAt + delayMs > deadlineMs) throw error;
      signal?.throwIfAborted();
      onRetry?.(error, attempt, delayMs);
      try {
        await sleep(delayMs, undefined, signal && { signal });
      } catch (aborted) {
        signal?.throwIfAborted();
        throw aborted;
      }
    }
  }
};
