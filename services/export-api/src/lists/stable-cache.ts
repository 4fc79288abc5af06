import { formatTimestampZ, type ListName, type Micros } from "@conversation-export/domain";
import type { Stable } from "@conversation-export/warehouse";
import { createInstantCache } from "./instant-cache.ts";

/**
 * Everything stored before `until` is readable by a later query, and every event that reached the bus before
 * `watermark` was stored; undefined: unknown.
 */
export type ReadStable = (
  list: ListName,
) => Promise<{ readonly until: Micros | undefined; readonly watermark: string | undefined }>;

const UNTIL = "until";

/**
 * Caches what is stable for `maxAgeMs`.
 * @param deps.clock milliseconds, from any origin
 */
export const createStableCache = (deps: {
  readonly load: () => Promise<Stable>;
  readonly maxAgeMs: number;
  readonly clock: () => number;
}): ReadStable => {
  const read = createInstantCache<ListName | typeof UNTIL>({
    ...deps,
    load: async () => {
      const { until, watermarks } = await deps.load();
      return { ...watermarks, ...(until > 0 && { [UNTIL]: until }) };
    },
  });
  return async (list) => {
    // The watermark first: what it covers is stable by the instant that is known with it or later.
    const watermark = await read(list);
    return {
      until: await read(UNTIL),
      watermark: watermark === undefined ? undefined : formatTimestampZ(watermark),
    };
  };
};
