import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "@conversation-export/runtime";

/** A token as it was given out; `livesMs` counts from before it was asked for. */
export type FreshToken = { readonly value: string; readonly livesMs: number };

/** The token of one login, which all connections of a process share. */
export type TokenSource = {
  /**
   * A token that lives long enough for a login. One request at a time: who asks meanwhile waits for it.
   * `onLateRenewal` gets the error when a renewal fails while the present token is still good.
   * @throws ServiceError `bus_token` or, when asking again may help, `bus_token_away`
   */
  ask(onLateRenewal?: (error: unknown) => void): Promise<string>;
  /** The broker refused this token: the next login asks for another one. */
  forget(value: string): void;
};

type Held = { readonly value: string; readonly renewFrom: number; readonly usableUntil: number };

/** No login begins with a token in its last minute. */
const MARGIN_MS = 60_000;
/** The share of its use after which a token is renewed in the background. */
const RENEW_AT = 0.8;
const PAUSE = { initialMs: 500, maxMs: 10_000, jitter: 0.5 };

/**
 * Keeps the token that `fetch` gives until its last minute, or for half of its life when it lives for less
 * than two. After a failure the next request waits, longer with each.
 *
 * @param now milliseconds of a clock that nobody sets
 */
export const createTokenSource = (deps: {
  readonly fetch: () => Promise<FreshToken>;
  readonly now?: () => number;
}): TokenSource => {
  const { fetch, now = () => performance.now() } = deps;
  let held: Held | undefined;
  let request: Promise<Held> | undefined;
  let failures = 0;
  let notBefore = 0;

  const countFailure = (): void => {
    failures += 1;
    notBefore = now() + backoffMs(failures, PAUSE);
  };

  const renew = async (): Promise<Held> => {
    const pauseMs = notBefore - now();
    if (pauseMs > 0) await sleep(pauseMs);
    const askedAt = now();
    try {
      const { value, livesMs } = await fetch();
      const usableMs = livesMs - Math.min(MARGIN_MS, livesMs / 2);
      held = { value, renewFrom: askedAt + usableMs * RENEW_AT, usableUntil: askedAt + usableMs };
      failures = 0;
      return held;
    } catch (error) {
      countFailure();
      throw error;
    }
  };

  const renewOnce = (): Promise<Held> => {
    request ??= renew().finally(() => {
      request = undefined;
    });
    return request;
  };

  return {
    ask: async (onLateRenewal) => {
      if (held === undefined || now() >= held.usableUntil) return (await renewOnce()).value;
      if (now() >= held.renewFrom && now() >= notBefore && request === undefined) {
        renewOnce().catch((error: unknown) => onLateRenewal?.(error));
      }
      return held.value;
    },
    forget: (value) => {
      if (held?.value !== value) return;
      held = undefined;
      countFailure();
    },
  };
};
