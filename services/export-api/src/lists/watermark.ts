import { formatTimestampZ, type ListName } from "@conversation-export/domain";
import type { Watermarks } from "@conversation-export/warehouse";
import { createInstantCache } from "./instant-cache.ts";

/** Ask before the query, which then reads all earlier events. Never rejects; decreases only between processes. */
export type ReadWatermark = (list: ListName) => Promise<string | undefined>;

export const watermarkHeader = (readable: string | undefined): Record<string, string> =>
  readable === undefined ? {} : { "x-export-watermark": readable };

export const createWatermarkCache = (deps: {
  readonly load: () => Promise<Watermarks>;
  readonly maxAgeMs: number;
  readonly clock: () => number;
  readonly now: () => number;
}): ReadWatermark => {
  const { load, maxAgeMs, clock, now } = deps;
  // A later one is of a wrong clock.
  const read = createInstantCache({ load, maxAgeMs, clock, isValid: (instant) => instant <= now() * 1000 });
  return async (list) => {
    const instant = await read(list);
    return instant === undefined ? undefined : formatTimestampZ(instant);
  };
};
