import type { Micros } from "@conversation-export/domain";
import type { LandingStore } from "@conversation-export/warehouse";

/** Notes in the warehouse, ahead of time, that rows will lack events in the landing table. */
export type LandingGap = {
  /** Resolves when the warehouse has a note that covers rows with this stamp, µs. */
  cover(stamp: Micros, signal: AbortSignal): Promise<void>;
};

/** How far ahead a note reaches. */
const LENGTH: Micros = 120_000_000;

export const createLandingGap = (deps: { readonly store: Pick<LandingStore, "markGap"> }): LandingGap => {
  // Concurrent marks by several lanes are harmless.
  let until: Micros = 0;
  return {
    cover: async (stamp, signal) => {
      if (stamp < until) return;
      const wanted = stamp + LENGTH;
      await deps.store.markGap(wanted, signal);
      until = Math.max(until, wanted);
    },
  };
};
