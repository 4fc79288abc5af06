import type { LandingStore } from "@conversation-export/warehouse";

/** Notes in the warehouse, ahead of time, that rows will lack events in the landing table. */
export type LandingGap = {
  /** Resolves when the warehouse has a note that covers uploads up to a minute from now. */
  cover(signal: AbortSignal): Promise<void>;
};

/** How far ahead a note reaches. */
const LENGTH_MS = 120_000;
/** Remaining time below which a new note is written. */
const LEFT_MS = 60_000;

/** @param deps.now milliseconds since the epoch */
export const createLandingGap = (deps: {
  readonly store: Pick<LandingStore, "markGap">;
  readonly now: () => number;
}): LandingGap => {
  const { store, now } = deps;
  // Concurrent marks by several lanes are harmless.
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
