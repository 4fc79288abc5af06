import { setTimeout as sleep } from "node:timers/promises";

const ASK_EVERY_MS = 1_000;

export type Throttle = {
  /** An unknown lag counts as too large. */
  untilLagIs(maxLag: number | null, signal: AbortSignal, onWait: (lag: number | null) => void): Promise<void>;
  /** `startedAt` is of `performance.now`. */
  pace(events: number, startedAt: number, rowsPerSecond: number | null, signal: AbortSignal): Promise<void>;
};

/** `lag`: null when Kafka does not answer. */
export const createThrottle = (deps: {
  readonly lag: (signal: AbortSignal) => Promise<number | null>;
  readonly askEveryMs?: number;
}): Throttle => {
  const { lag, askEveryMs = ASK_EVERY_MS } = deps;
  return {
    async untilLagIs(maxLag, signal, onWait) {
      if (maxLag === null) return;
      for (;;) {
        signal.throwIfAborted();
        const behind = await lag(signal);
        if (behind !== null && behind <= maxLag) return;
        onWait(behind);
        await sleep(askEveryMs, undefined, { signal });
      }
    },
    async pace(events, startedAt, rowsPerSecond, signal) {
      if (rowsPerSecond === null) return;
      const left = startedAt + (events / rowsPerSecond) * 1_000 - performance.now();
      if (left > 0) await sleep(left, undefined, { signal });
    },
  };
};
