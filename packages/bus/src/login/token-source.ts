import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "@conversation-export/runtime";

/** `livesMs` counts from before the request. */
export type FreshToken = { readonly value: string; readonly livesMs: number };

/** One for all connections of a process. */
export type TokenSource = {
  /** Concurrent calls share a request; throws `bus_token` or `bus_token_away`. */
  ask(onLateRenewal?: (error: unknown) => void): Promise<string>;
  /** false: another will not help. */
  refused(value: string): boolean;
  accepted(): void;
};

type Held = {
  readonly value: string;
  readonly renewFrom: number;
  readonly usableUntil: number;
  readonly livesMs: number;
};

const MARGIN_MS = 60_000;
const RENEW_AT = 0.8;
const PAUSE = { initialMs: 500, maxMs: 10_000 };
const REFUSAL_PAUSE = { initialMs: 1000, maxMs: 16_000 };
/** After new keys brokers may reject a good token for some seconds. */
const MAX_REFUSALS = { beforeFirstLogin: 3, later: 7 };
/** Node's longest timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** `now`: monotonic ms; a token unused for two lives is not renewed. */
export const createTokenSource = (deps: {
  readonly fetch: () => Promise<FreshToken>;
  readonly now?: () => number;
}): TokenSource => {
  const { fetch, now = () => performance.now() } = deps;
  let held: Held | undefined;
  let request: Promise<Held> | undefined;
  let failures = 0;
  let refusals = 0;
  let hasWorked = false;
  let notBefore = 0;
  let lastAsked = 0;
  let reportLate: ((error: unknown) => void) | undefined;
  let timer: NodeJS.Timeout | undefined;

  const renew = async (): Promise<Held> => {
    const pauseMs = notBefore - now();
    if (pauseMs > 0) await sleep(pauseMs);
    const askedAt = now();
    try {
      const { value, livesMs } = await fetch();
      const usableMs = livesMs - Math.min(MARGIN_MS, livesMs / 2);
      held = { value, renewFrom: askedAt + usableMs * RENEW_AT, usableUntil: askedAt + usableMs, livesMs };
      failures = 0;
      renewLater();
      return held;
    } catch (error) {
      failures += 1;
      notBefore = now() + backoffMs(failures, PAUSE);
      throw error;
    }
  };

  const renewOnce = (): Promise<Held> => {
    request ??= renew().finally(() => {
      request = undefined;
    });
    return request;
  };

  const renewInBackground = (): void => {
    renewOnce().catch((error: unknown) => {
      reportLate?.(error);
      renewLater();
    });
  };

  // Brokers end sessions with the token: the next login has only seconds.
  const renewLater = (): void => {
    clearTimeout(timer);
    if (held === undefined || now() >= held.usableUntil) return;
    const waitMs = Math.min(Math.max(held.renewFrom, notBefore) - now(), LONGEST_TIMER_MS);
    timer = setTimeout(() => {
      if (held === undefined || now() - lastAsked > 2 * held.livesMs) return;
      if (now() < held.renewFrom) renewLater();
      else if (request === undefined) renewInBackground();
    }, waitMs);
    timer.unref();
  };

  return {
    ask: async (onLateRenewal) => {
      lastAsked = now();
      reportLate = onLateRenewal ?? reportLate;
      if (held === undefined || now() >= held.usableUntil) return (await renewOnce()).value;
      if (now() >= held.renewFrom && now() >= notBefore && request === undefined) renewInBackground();
      return held.value;
    },
    refused: (value) => {
      if (held?.value === value) {
        held = undefined;
        clearTimeout(timer);
        refusals += 1;
        notBefore = now() + backoffMs(refusals, REFUSAL_PAUSE);
      }
      return refusals < (hasWorked ? MAX_REFUSALS.later : MAX_REFUSALS.beforeFirstLogin);
    },
    accepted: () => {
      hasWorked = true;
      refusals = 0;
    },
  };
};
