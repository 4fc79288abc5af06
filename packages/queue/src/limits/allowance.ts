import type { RateWindow } from "@conversation-export/domain";

/** Whether a request may pass, described by the window that matters most to the caller. */
export type Allowance = {
  readonly allowed: boolean;
  /** Requests in the window. */
  readonly limit: number;
  readonly remaining: number;
  /** Unix time in whole seconds at which the window has ended. */
  readonly resetAt: number;
  /** Whole seconds until then, 1 to 86,400. */
  readonly retryAfter: number;
  /** The window with the fewest requests left; among equals the last one to reset. */
  readonly window: RateWindow;
  /** false: counted by this process alone. */
  readonly shared: boolean;
};

/** What was counted in one window so far, and its end in ms since the epoch. */
export type WindowCount = { readonly count: number; readonly end: number };

/** `counts` has one entry for each window; `windows` must not be empty. */
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
