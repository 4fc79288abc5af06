import type { Micros } from "@conversation-export/domain";
import type { LandingStore } from "@conversation-export/warehouse";

/** Marks ahead of time that landing will lack events (docs/decisions/0011). */
export type LandingGap = {
  cover(stamp: Micros, signal: AbortSignal): Promise<void>;
};

const LENGTH: Micros = 120_000_000;

export const createLandingGap = (deps: { readonly store: Pick<LandingStore, "markGap"> }): LandingGap => {
  // Lanes may mark concurrently.
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
