import { formatTimestampZ, type ListName } from "@conversation-export/domain";
import type { Watermarks } from "@conversation-export/warehouse";
import { createInstantCache } from "./instant-cache.ts";

/**
 * The text of `X-Export-Watermark`; ask before the query, which then reads every event that reached the bus
 * before it. undefined while unknown; never rejects, never decreases.
 */
export type ReadWatermark = (list: ListName) => Promise<string | undefined>;

/** The header that tells until when the list is complete. */
export const watermarkHeader = (readable: string | undefined): Record<string, string> =>
  readable === undefined ? {} : { "x-export-watermark": readable };

/**
 * Caches the watermarks for `maxAgeMs`. Instants ahead of the clock are ignored.
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
  // The clock of a process that stored a later one is wrong.
  const read = createInstantCache({ load, maxAgeMs, clock, isValid: (instant) => instant <= now() * 1000 });
  return async (list) => {
    const instant = await read(list);
    return instant === undefined ? undefined : formatTimestampZ(instant);
  };
};
