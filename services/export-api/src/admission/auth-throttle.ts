import type { RateWindow } from "@conversation-export/domain";
import { createMemoryLimiter } from "@conversation-export/queue";
import { type ApiError, keyUnchecked, rateLimitExceeded } from "../http/api-error.ts";
import { networksOf } from "./networks.ts";
import { describeRate } from "./rate-limit.ts";

const MAX_ADDRESSES = 10_000;
/** A site has many subscribers. */
const SITE_FACTOR = 4;
/** Of the total, for look-ups from addresses over their limit. */
const SHARE_OVER_LIMIT = 1 / 2;
/** While the warehouse is slow, known keys need its connections. */
const MAX_RUNNING = 8;
const BUSY_RETRY_SECONDS = 1;

/** 401 or 403; 429; 429 without a look-up. */
export type FailureResult = "refused" | "limited" | "unchecked";

export type Attempt = {
  /** The key is good, or the look-up failed. */
  forgive(): void;
  /** @throws ApiError 429 if its failures were already used up */
  refused(): void;
};

/** Each replica allows the windows once. */
export type AuthThrottle = {
  /** @throws ApiError 429 while the address has used up its failures */
  failed(address: string): void;
  /**
   * Counts before the look-up, so that parallel guesses stay few; an address over its limit may still look up.
   * @throws ApiError 429
   */
  attempt(address: string): Attempt;
};

const times = (windows: readonly RateWindow[], factor: number): readonly RateWindow[] =>
  windows.map(({ requests, seconds }) => ({ requests: Math.max(Math.floor(requests * factor), 1), seconds }));

/** `windows` are per address; an empty list is no limit. */
export const createAuthThrottle = (deps: {
  readonly windows: readonly RateWindow[];
  readonly total?: readonly RateWindow[];
  readonly now?: () => number;
  readonly onFailure?: (result: FailureResult) => void;
}): AuthThrottle => {
  const { windows, total = [], now = Date.now, onFailure } = deps;
  const failures = createMemoryLimiter({ maxKeys: MAX_ADDRESSES, now });
  const lookups = createMemoryLimiter({ maxKeys: 2, now });
  let running = 0;

  const limitsOf = (address: string) =>
    windows.length === 0
      ? []
      : networksOf(address).map((network, index) => ({
          network,
          limits: index === 0 ? windows : times(windows, SITE_FACTOR),
        }));

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

  const fail = (refusal: ApiError | undefined): void => {
    onFailure?.(refusal === undefined ? "refused" : "limited");
    if (refusal !== undefined) throw refusal;
  };

  return {
    failed: (address) => {
      fail(refusalOf(address));
      count(address);
    },
    attempt: (address) => {
      const refusal = refusalOf(address);
      const shares = [
        { key: "all", limits: total },
        ...(refusal === undefined ? [] : [{ key: "over limit", limits: times(total, SHARE_OVER_LIMIT) }]),
      ].filter(({ limits }) => limits.length > 0);
      const usedUp = shares
        .map(({ key, limits }) => lookups.peek(key, limits))
        .find(({ allowed }) => !allowed);
      if (usedUp !== undefined || running >= MAX_RUNNING) {
        onFailure?.(refusal === undefined ? "unchecked" : "limited");
        throw refusal ?? keyUnchecked(usedUp?.retryAfter ?? BUSY_RETRY_SECONDS);
      }
      running += 1;
      for (const { key, limits } of shares) lookups.consume(key, limits);
      if (refusal === undefined) count(address);
      return {
        forgive: () => {
          running -= 1;
          for (const { key, limits } of shares) lookups.refund(key, limits);
          if (refusal !== undefined) return;
          for (const { network, limits } of limitsOf(address)) failures.refund(network, limits);
        },
        refused: () => {
          running -= 1;
          fail(refusal);
        },
      };
    },
  };
};
