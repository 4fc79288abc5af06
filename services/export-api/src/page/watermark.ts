import { formatTimestampZ, type ListName } from "@conversation-export/domain";
import { within } from "@conversation-export/runtime";
import type { Watermarks } from "@conversation-export/warehouse";

/** An answer waits no longer for a fresh watermark: an older one is still true. */
const PATIENCE_MS = 250;

/**
 * The text of `X-Export-Watermark`: a query that begins after this has resolved reads every event that
 * reached the bus before that instant. So ask for it before the query. undefined while unknown; it never
 * rejects and never goes back.
 */
export type ReadWatermark = (list: ListName) => Promise<string | undefined>;

/** The header that tells until when the list is complete. */
export const watermarkHeader = (readable: string | undefined): Record<string, string> =>
  readable === undefined ? {} : { "x-export-watermark": readable };

/**
 * Caches the watermarks for `maxAgeMs`. One load runs at a time; while it fails or is slow, the known
 * instants stay in use. Instants ahead of the clock are ignored.
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
        // The clock of the process that stored it is wrong.
        if (instant > now() * 1000) continue;
        // Another replica may answer, and be behind.
        known.set(list, Math.max(instant, known.get(list) ?? instant));
      }
    } catch {
      // Ignored: reading the records will show the fault.
    } finally {
      loading = undefined;
    }
  };

  return async (list) => {
    if (loading === undefined && clock() - askedAt >= maxAgeMs) {
      askedAt = clock();
      loading = refresh();
    }
    if (loading !== undefined) await within(loading, PATIENCE_MS, () => undefined);
    const instant = known.get(list);
    return instant === undefined ? undefined : formatTimestampZ(instant);
  };
};
