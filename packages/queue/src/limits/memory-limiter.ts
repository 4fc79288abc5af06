import type { RateWindow } from "@conversation-export/domain";
import { LRUCache } from "lru-cache";
import { type Allowance, describeAllowance, type WindowCount } from "./allowance.ts";

/** Counts requests in the memory of this process. `windows` must not be empty. */
export type MemoryLimiter = {
  /** Counts one request in all windows, or in none when one is used up. */
  consume(key: string, windows: readonly RateWindow[]): Allowance;
  /** Takes one counted request back. */
  refund(key: string, windows: readonly RateWindow[]): void;
  /** What `consume` would answer, without counting; `remaining` is what is left before the request. */
  peek(key: string, windows: readonly RateWindow[]): Allowance;
};

/**
 * @param deps.maxKeys number of keys from which on the least recently used one is forgotten
 * @param deps.now milliseconds since the epoch
 */
export const createMemoryLimiter = (deps: {
  readonly maxKeys: number;
  readonly now?: () => number;
}): MemoryLimiter => {
  const { maxKeys, now: clock = Date.now } = deps;
  /** The counts of a key by the length of the window. */
  const keys = new LRUCache<string, ReadonlyMap<number, WindowCount>>({ max: maxKeys });

  const look = (key: string, windows: readonly RateWindow[]) => {
    const now = clock();
    const known = keys.peek(key);
    const counts = windows.map(({ seconds }): WindowCount => {
      const found = known?.get(seconds);
      const whole = now + seconds * 1000;
      // A clock that was set back must not make a window longer.
      return found === undefined || found.end <= now
        ? { count: 0, end: whole }
        : { count: found.count, end: Math.min(found.end, whole) };
    });
    const allowed = windows.every(({ requests }, index) => (counts[index]?.count ?? 0) < requests);
    return { now, counts, allowed };
  };

  const remember = (key: string, windows: readonly RateWindow[], counts: readonly WindowCount[]): void => {
    const begun = new Map<number, WindowCount>();
    for (const [index, { seconds }] of windows.entries()) {
      const found = counts[index];
      // A window begins with the first request it admits, so a refused one begins none.
      if (found !== undefined && found.count > 0) begun.set(seconds, found);
    }
    keys.set(key, begun);
  };

  return {
    consume: (key, windows) => {
      const { now, counts: before, allowed } = look(key, windows);
      const counts = allowed ? before.map(({ count, end }) => ({ count: count + 1, end })) : before;
      remember(key, windows, counts);
      return describeAllowance(windows, counts, { allowed, shared: false, now });
    },
    refund: (key, windows) => {
      const { counts } = look(key, windows);
      remember(
        key,
        windows,
        counts.map(({ count, end }) => ({ count: Math.max(count - 1, 0), end })),
      );
    },
    peek: (key, windows) => {
      const { now, counts, allowed } = look(key, windows);
      return describeAllowance(windows, counts, { allowed, shared: false, now });
    },
  };
};
