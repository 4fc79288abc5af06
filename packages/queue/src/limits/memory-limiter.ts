import type { RateWindow } from "@conversation-export/domain";
import { LRUCache } from "lru-cache";
import { type Allowance, describeAllowance, type WindowCount } from "./allowance.ts";

type Windows = readonly RateWindow[];

/** `windows` must not be empty. */
export const createMemoryLimiter = (deps: { readonly maxKeys: number; readonly now?: () => number }) => {
  const { maxKeys, now: clock = Date.now } = deps;
  const keys = new LRUCache<string, ReadonlyMap<number, WindowCount>>({ max: maxKeys });

  const look = (key: string, windows: Windows) => {
    const now = clock();
    const known = keys.peek(key);
    const counts = windows.map(({ seconds }): WindowCount => {
      const found = known?.get(seconds);
      const whole = now + seconds * 1000;
      // A clock that was set back must not lengthen a window.
      return found === undefined || found.end <= now
        ? { count: 0, end: whole }
        : { count: found.count, end: Math.min(found.end, whole) };
    });
    const allowed = windows.every(({ requests }, index) => (counts[index]?.count ?? 0) < requests);
    return { now, counts, allowed };
  };

  const remember = (key: string, windows: Windows, counts: readonly WindowCount[]): void => {
    const begun = new Map<number, WindowCount>();
    for (const [index, { seconds }] of windows.entries()) {
      const found = counts[index];
      // A window begins with the first request it admits.
      if (found !== undefined && found.count > 0) begun.set(seconds, found);
    }
    keys.set(key, begun);
  };

  return {
    /** In all windows, or in none when one is used up. */
    consume: (key: string, windows: Windows): Allowance => {
      const { now, counts: before, allowed } = look(key, windows);
      const counts = allowed ? before.map(({ count, end }) => ({ count: count + 1, end })) : before;
      remember(key, windows, counts);
      return describeAllowance(windows, counts, { allowed, shared: false, now });
    },
    refund: (key: string, windows: Windows): void => {
      const { counts } = look(key, windows);
      remember(
        key,
        windows,
        counts.map(({ count, end }) => ({ count: Math.max(count - 1, 0), end })),
      );
    },
    /** Counts nothing; `remaining` is before the request. */
    peek: (key: string, windows: Windows): Allowance => {
      const { now, counts, allowed } = look(key, windows);
      return describeAllowance(windows, counts, { allowed, shared: false, now });
    },
  };
};
