import { setTimeout as sleep } from "node:timers/promises";
import { formatTimestampZ } from "@conversation-export/domain";
import type { ListName, Watermarks } from "@conversation-export/warehouse";

/** The longest that an answer waits for a watermark: one that is older is still true. */
const PATIENCE_MS = 250;

/**
 * The text for `X-Export-Watermark`: every event that reached the bus before it is readable by a query that
 * begins after this call has resolved; ask before the query, therefore. Undefined while unknown. Never rejects
 * and never falls.
 */
export type ReadWatermark = (list: ListName) => Promise<string | undefined>;

/**
 * Keeps the watermarks for `maxAgeMs`. One load runs at a time; while it fails or takes long, what is known
 * stays good. An instant that lies ahead of the clock is not taken over.
 * @param deps.clock milliseconds, from any origin
 * @param deps.now milliseconds since the epoch
 */
export const createWatermarkCache = (deps: {
  readonly load: () => Promise<Watermarks>;
  readonly maxAgeMs: number;
  readonly clock: () => number;
  readonly now: () => number;
}): ReadWatermark => {
  const { load, maxAgeMs, clock, now } = deps;
  const known = new Map<string, number>();
  let askedAt = -Infinity;
  let loading: Promise<void> | undefined;

  const refresh = async (): Promise<void> => {
    try {
      const loaded: Readonly<Record<string, number>> = await load();
      for (const [list, instant] of Object.entries(loaded)) {
        // The clock of who stored it is wrong.
        if (instant > now() * 1000) continue;
        // Servers of a cluster may answer in turns, one of them later than the others.
        known.set(list, Math.max(instant, known.get(list) ?? instant));
      }
    } catch {
      // The trouble shows where records are read.
    } finally {
      loading = undefined;
    }
  };

  return async (list) => {
    if (loading === undefined && clock() - askedAt >= maxAgeMs) {
      askedAt = clock();
      loading = refresh();
    }
    if (loading !== undefined) {
      const patience = new AbortController();
      const late = sleep(PATIENCE_MS, undefined, { signal: patience.signal, ref: false }).catch(() => {});
      await Promise.race([loading, late]);
      patience.abort();
    }
    const instant = known.get(list);
    return instant === undefined ? undefined : formatTimestampZ(instant);
  };
};
