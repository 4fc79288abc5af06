import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@conversation-export/runtime";
import { clientOf, type Redis } from "../redis/redis.ts";
import { createRedisLocks, type RedisLock } from "./redis-lock.ts";

const KEY_PREFIX = "conversation-export:exclusive";
const RENEWALS = 3;
/** After this share without renewal work stops; the rest is for what is under way. */
const USABLE_SHARE = 2 / 3;
const ASK_EVERY_MS = 200;

/** Among all processes on the same Redis. */
export type Exclusive = {
  /** Waits, also without Redis; never nest it. Its signal aborts with `lock_lost` (retryable): another may get it. */
  run<T>(name: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  unlessTaken<T>(
    name: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined>;
};

/** `lockMs` must be the same in all processes. */
export const createExclusive = (deps: { readonly redis: Redis; readonly lockMs: number }): Exclusive => {
  const { lockMs } = deps;
  const lockOf = createRedisLocks(clientOf(deps.redis));

  /** Until when, by our clock, the lock may be used; undefined: another has it. */
  const taken = async (
    lock: RedisLock,
    signal: AbortSignal,
    mayWait: boolean,
  ): Promise<number | undefined> => {
    for (;;) {
      signal.throwIfAborted();
      const askedAt = performance.now();
      const isOurs = await answerOf(lock.take());
      if (isOurs === true) return askedAt + lockMs * USABLE_SHARE;
      if (isOurs === false && !mayWait) return undefined;
      // Random, so that late comers get their turn.
      await sleep(ASK_EVERY_MS * (0.5 + Math.random()), undefined, { signal });
    }
  };

  const keep = async (lock: RedisLock, until: number, done: AbortSignal, lose: () => void): Promise<void> => {
    let usableUntil = until;
    const pause = Math.min(lockMs / RENEWALS, 1_000);
    let renewAt = performance.now() + lockMs / RENEWALS;
    for (;;) {
      const left = Math.min(renewAt, usableUntil) - performance.now();
      await sleep(Math.max(0, left), undefined, { signal: done });
      const askedAt = performance.now();
      if (askedAt >= usableUntil) return lose();
      const kept = await answerOf(lock.renew());
      if (kept === false) return lose();
      if (kept === true) usableUntil = askedAt + lockMs * USABLE_SHARE;
      renewAt = kept === true ? askedAt + lockMs / RENEWALS : askedAt + pause;
    }
  };

  const under = async <T>(
    name: string,
    signal: AbortSignal,
    mayWait: boolean,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> => {
    const lock = lockOf(`${KEY_PREFIX}:${name}`, lockMs);
    const lost = new AbortController();
    const done = new AbortController();
    try {
      const until = await taken(lock, signal, mayWait);
      if (until === undefined) return undefined;
      const kept = keep(lock, until, done.signal, () =>
        lost.abort(new ServiceError("lock_lost", `the lock "${name}" was lost`, { retryable: true })),
      ).catch((error: unknown) => {
        if (!done.signal.aborted) lost.abort(error);
      });
      try {
        return await work(AbortSignal.any([signal, lost.signal]));
      } finally {
        done.abort();
        await kept;
      }
    } finally {
      // Without an answer the lock expires.
      await answerOf(lock.release());
    }
  };

  return {
    run: async <T>(name: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>) =>
      (await under(name, signal, true, work)) as T,
    unlessTaken: (name, signal, work) => under(name, signal, false, work),
  };
};

/** null: Redis did not answer. */
const answerOf = async <T>(asked: Promise<T>): Promise<T | null> => {
  try {
    return await asked;
  } catch {
    return null;
  }
};
