import type { RateWindow } from "@conversation-export/domain";
import { createMemoryLimiter } from "@conversation-export/queue";
import { rateLimitExceeded } from "../http/api-error.ts";
import { networksOf } from "./networks.ts";
import { describeRate } from "./rate-limit.ts";

const MAX_ADDRESSES = 10_000;
const DEFAULT_WINDOWS: readonly RateWindow[] = [{ requests: 20, seconds: 60 }];
/** A site has many subscribers. */
const SITE_FACTOR = 4;
/** The part of the total that look-ups from addresses over their limit may use up. */
const SHARE_OVER_LIMIT = 1 / 2;

/** A look-up of a key that this process has not seen. */
export type Attempt = {
  /** The key is good, or nobody could tell: it was no failure. */
  forgive(): void;
  /** The key is bad. @throws ApiError 429 when the address had used up its failures before */
  refused(): void;
};

/** Slows down guessing of keys. Counts in this process: each replica allows the windows once. */
export type AuthThrottle = {
  /** Counts a failed authentication. @throws ApiError 429 while the address has used up its failures */
  failed(address: string): void;
  /**
   * Counts a look-up as a failure before it is made: many guesses at once must not reach the warehouse. An
   * address that has used up its failures may still look up, since others may share it.
   * @throws ApiError 429 when look-ups of all addresses have used up the total
   */
  attempt(address: string): Attempt;
};

const times = (windows: readonly RateWindow[], factor: number): readonly RateWindow[] =>
  windows.map(({ requests, seconds }) => ({ requests: Math.max(Math.floor(requests * factor), 1), seconds }));

/**
 * @param deps.windows failed authentications per address; no windows is no limit
 * @param deps.total look-ups that fail, of all addresses together; no windows is no limit
 */
export const createAuthThrottle = (
  deps: {
    readonly windows?: readonly RateWindow[];
    readonly total?: readonly RateWindow[];
    readonly now?: () => number;
  } = {},
): AuthThrottle => {
  const { windows = DEFAULT_WINDOWS, total = [], now = Date.now } = deps;
  const failures = createMemoryLimiter({ maxKeys: MAX_ADDRESSES, now });
  const lookups = createMemoryLimiter({ maxKeys: 2, now });

  const limitsOf = (address: string) =>
    windows.length === 0
      ? []
      : networksOf(address).map((network, index) => ({
          network,
          limits: index === 0 ? windows : times(windows, SITE_FACTOR),
        }));

  /** The refusal that an address has earned by its failures so far. */
  const refusalOf = (address: string) => {
    for (const { network, limits } of limitsOf(address)) {
      const { allowed, window, retryAfter } = failures.peek(network, limits);
      if (!allowed) return rateLimitExceeded(describeRate(window, "failed authentication"), retryAfter);
    }
    return undefined;
  };

  const count = (address: string): void => {
    for (const { network, limits } of limitsOf(address)) failures.consume(network, limits);
  };

  return {
    failed: (address) => {
      const refusal = refusalOf(address);
      if (refusal !== undefined) throw refusal;
      count(address);
    },
    attempt: (address) => {
      const refusal = refusalOf(address);
      const shares = [
        { key: "all", limits: total },
        ...(refusal === undefined ? [] : [{ key: "over limit", limits: times(total, SHARE_OVER_LIMIT) }]),
      ].filter(({ limits }) => limits.length > 0);
      for (const { key, limits } of shares) {
        const { allowed, window, retryAfter } = lookups.peek(key, limits);
        if (!allowed) throw refusal ?? rateLimitExceeded(describeRate(window, "failed look-up"), retryAfter);
      }
      for (const { key, limits } of shares) lookups.consume(key, limits);
      if (refusal === undefined) count(address);
      return {
        forgive: () => {
          for (const { key, limits } of shares) lookups.refund(key, limits);
          if (refusal !== undefined) return;
          for (const { network, limits } of limitsOf(address)) failures.refund(network, limits);
        },
        refused: () => {
          if (refusal !== undefined) throw refusal;
        },
      };
    },
  };
};
