import { within } from "@conversation-export/runtime";

/** Known instants that are not old are still true. */
const PATIENCE_MS = 250;
const MOST_AGE_MS = 10_000;
/** As long as a key look-up. */
const LONG_PATIENCE_MS = 5_000;

/** While loading fails, known instants serve for ten seconds. Never rejects. */
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
      // Reading the records will show the fault.
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
