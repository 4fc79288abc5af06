import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable, ServiceError } from "@conversation-export/runtime";
import { askRedis, clientOf, type Redis } from "./redis.ts";
import { createScript } from "./script.ts";

const KEY_PREFIX = "conversation-export:exclusive";
const LOCK_MS = 30_000;
const RENEWALS = 3;
/** Who has not renewed for this share of the lock stops; the rest is for what is under way. */
const USABLE_SHARE = 2 / 3;
const ASK_EVERY_MS = 200;

/** ARGV: token, length of the lock in ms. */
const TAKE = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;

/** ARGV: token, length. */
const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/** ARGV: token. */
const RELEASE = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`;

/** Work that is done by one process at a time, of all that use the same Redis. */
export type Exclusive = {
  /**
   * Waits for the lock `name` and runs `work` under it, also when Redis is away for a while. Not to be nested.
   * @param work its signal aborts with `signal`, and with ServiceError `lock_lost` (retryable) when the lock could not
   *   be renewed: another may have it 10 s later
   * @throws what `work` throws; the reason of `signal` when that aborts before
   */
  run<T>(name: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
};

/** @param deps.lockMs the same for all processes */
export const createExclusive = (deps: { readonly redis: Redis; readonly lockMs?: number }): Exclusive => {
  const lockMs = deps.lockMs ?? LOCK_MS;
  const client = clientOf(deps.redis);
  const take = createScript(client, TAKE);
  const renew = createScript(client, RENEW);
  const release = createScript(client, RELEASE);

  /** null: Redis is away. */
  const ask = async (
    script: typeof take,
    key: string,
    args: (string | number)[],
  ): Promise<boolean | null> => {
    try {
      return (await askRedis(() => script(key, args))) === 1;
    } catch (error) {
      if (isRetryable(error)) return null;
      throw error;
    }
  };

  /** Until when the lock may be used, by our clock. */
  const taken = async (key: string, token: string, signal: AbortSignal): Promise<number> => {
    for (;;) {
      signal.throwIfAborted();
      const askedAt = performance.now();
      if (await ask(take, key, [token, lockMs])) return askedAt + lockMs * USABLE_SHARE;
      // Not in step, so that who comes later also gets its turn.
      await sleep(ASK_EVERY_MS * (0.5 + Math.random()), undefined, { signal });
    }
  };

  /** Keeps the lock until `done` aborts, or calls `lose`. */
  const keep = async (
    key: string,
    token: string,
    until: number,
    done: AbortSignal,
    lose: () => void,
  ): Promise<void> => {
    let usableUntil = until;
    const pause = Math.min(lockMs / RENEWALS, 1_000);
    let renewAt = performance.now() + lockMs / RENEWALS;
    for (;;) {
      const left = Math.min(renewAt, usableUntil) - performance.now();
      await sleep(Math.max(0, left), undefined, { signal: done });
      const askedAt = performance.now();
      if (askedAt >= usableUntil) return lose();
      const kept = await ask(renew, key, [token, lockMs]);
      if (kept === false) return lose();
      if (kept === true) usableUntil = askedAt + lockMs * USABLE_SHARE;
      renewAt = kept === true ? askedAt + lockMs / RENEWALS : askedAt + pause;
    }
  };

  return {
    async run(name, signal, work) {
      const key = `${KEY_PREFIX}:${name}`;
      const token = randomUUID();
      const lost = new AbortController();
      const done = new AbortController();
      try {
        const until = await taken(key, token, signal);
        const kept = keep(key, token, until, done.signal, () =>
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
        // Also when an answer to taking it was lost. Without an answer now, it runs out.
        await ask(release, key, [token]);
      }
    },
  };
};
