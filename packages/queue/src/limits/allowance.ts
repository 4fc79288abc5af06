import type { RateWindow } from "@conversation-export/domain";

export type Allowance = {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Unix time in seconds. */
  readonly resetAt: number;
  /** Seconds, at least 1. */
  readonly retryAfter: number;
  /** With the fewest requests left; among equals the last to reset. */
  readonly window: RateWindow;
  /** false: counted by this process only. */
  readonly shared: boolean;
};

/** `end`: ms since the epoch. */
export type WindowCount = { readonly count: number; readonly end: number };

export const describeAllowance = (
  windows: readonly RateWindow[],
  counts: readonly WindowCount[],
  facts: { readonly allowed: boolean; readonly shared: boolean; readonly now: number },
): Allowance => {
  const { allowed, shared, now } = facts;
  const [reported] = windows
    .map((window, index) => {
      const { count, end } = counts[index] ?? { count: 0, end: now + window.seconds * 1000 };
      return { window, end, remaining: Math.max(window.requests - count, 0) };
    })
    .sort((one, other) => one.remaining - other.remaining || other.end - one.end);
  if (reported === undefined) throw new TypeError("no window to count in");
  return {
    allowed,
    limit: reported.window.requests,
    remaining: reported.remaining,
    resetAt: Math.ceil(reported.end / 1000),
    retryAfter: Math.max(Math.ceil((reported.end - now) / 1000), 1),
    window: reported.window,
    shared,
  };
};
