import { formatTimestampZ, type ListName, type Micros } from "@conversation-export/domain";
import type { Stable } from "@conversation-export/warehouse";
import { createInstantCache } from "./instant-cache.ts";

/** A later query reads all stored before `until` or on the bus before `watermark`; undefined: unknown. */
export type ReadStable = (
  list: ListName,
) => Promise<{ readonly until: Micros | undefined; readonly watermark: string | undefined }>;

const UNTIL = "until";

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
    // First: what it covers is stable by an instant that is read later.
    const watermark = await read(list);
    return {
      until: await read(UNTIL),
      watermark: watermark === undefined ? undefined : formatTimestampZ(watermark),
    };
  };
};
