import type { LandingStore } from "@conversation-export/warehouse";

/** Says in the warehouse, ahead of time, that rows are written whose events are not kept. */
export type LandingGap = {
  /** Resolves when uploads of this instant and of the minute behind it are known to be without their events. */
  cover(signal: AbortSignal): Promise<void>;
};

const LENGTH_MS = 120_000;
const LEFT_MS = 60_000;

/** @param deps.now milliseconds since the epoch */
export const createLandingGap = (deps: {
  readonly store: Pick<LandingStore, "markGap">;
  readonly now: () => number;
}): LandingGap => {
  const { store, now } = deps;
  // One for each lane may wait at a time; marking twice is harmless.
  let until = 0;
  return {
    cover: async (signal) => {
      while (until - now() < LEFT_MS) {
        const wanted = now() + LENGTH_MS;
        await store.markGap(wanted * 1000, signal);
        until = Math.max(until, wanted);
      }
    },
  };
};
