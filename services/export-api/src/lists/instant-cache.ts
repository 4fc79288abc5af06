import { within } from "@conversation-export/runtime";

/** An answer waits no longer for fresh instants while those that are known are not old: they are still true. */
const PATIENCE_MS = 250;
/** Older instants, such as those from before a quiet time, are no longer given out. */
const MOST_AGE_MS = 10_000;
/** As long as for a look-up of a key. */
const LONG_PATIENCE_MS = 5_000;

/**
 * Caches instants that only advance, for `maxAgeMs`. While loading fails, the known one serves for ten
 * seconds, then undefined. Never rejects.
 * @param deps.clock milliseconds, from any origin
 * @param deps.isValid instants that are not are ignored
 */
export const createInstantCache = <Name extends string>(deps: {
  readonly load: () => Promise<Readonly<Partial<Record<Name, number>>>>;
  readonly maxAgeMs: number;
  readonly clock: () => number;
  readonly isValid?: (instant: number) => boolean;
}): ((name: Name) => Promise<number | undefined>) => {
  const { load, maxAgeMs, clock, isValid = () => true } = deps;
  const known = new Map<string, { readonly instant: number; readonly loadedAt: number }>();
  let askedAt = -Infinity;
  let answeredAt = -Infinity;
  let loading: Promise<void> | undefined;

  const isOld = (at: number): boolean => clock() - at > MOST_AGE_MS;

  const refresh = async (): Promise<void> => {
    const begunAt = clock();
    try {
      for (const [name, instant] of Object.entries<number | undefined>(await load())) {
        if (instant === undefined || !isValid(instant)) continue;
        // Another replica may answer, and be behind.
        known.set(name, {
          instant: Math.max(instant, known.get(name)?.instant ?? instant),
          loadedAt: begunAt,
        });
      }
      answeredAt = begunAt;
    } catch {
      // Ignored: reading the records will show the fault.
    } finally {
      loading = undefined;
    }
  };

  return async (name) => {
    if (loading === undefined && clock() - askedAt >= maxAgeMs) {
      askedAt = clock();
      loading = refresh();
    }
    if (loading !== undefined) {
      await within(loading, isOld(answeredAt) ? LONG_PATIENCE_MS : PATIENCE_MS, () => undefined);
    }
    const latest = known.get(name);
    return latest === undefined || isOld(latest.loadedAt) ? undefined : latest.instant;
  };
};
