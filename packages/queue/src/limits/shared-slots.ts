import { randomUUID } from "node:crypto";
import type { Logger } from "@conversation-export/runtime";
import { clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW } from "../redis/script.ts";
import { createCircuitBreaker } from "./circuit-breaker.ts";

/** Among the keys of rate limits, to which the same Redis users have rights. */
const KEY_PREFIX = "conversation-export:rate:slots:";
const ANSWER_WITHIN_MS = 500;
const RENEWALS = 3;

/** Tokens by the end of their lease, none beyond a whole one, as after a clock set back; ARGV: lease ms, slots, token. */
const TAKE = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + ARGV[1]), '+inf')
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[1]), ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`;

/** ARGV: lease ms, tokens; slots that Redis forgot are in use, so they are taken again. */
const RENEW = `${NOW}
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[1]), ARGV[i]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
`;

/** ARGV: token. */
const RELEASE = `return redis.call('ZREM', KEYS[1], ARGV[1])`;

export type SharedSlots = {
  /** Returns how to free it; null: all in use; without Redis every slot is given. */
  take(key: string): Promise<(() => void) | null>;
};

/** After `leaseMs` the slots of a dead process are free. */
export const createSharedSlots = (deps: {
  readonly redis: Redis;
  readonly most: number;
  readonly leaseMs: number;
  readonly log: Logger;
  readonly onUnshared?: () => void;
}): SharedSlots => {
  const { most, leaseMs, log, onUnshared } = deps;
  const client = clientOf(deps.redis);
  const takeScript = createScript(client, TAKE);
  const renewScript = createScript(client, RENEW);
  const releaseScript = createScript(client, RELEASE);
  const breaker = createCircuitBreaker({
    isConnected: () => client.status === "ready",
    answerWithinMs: ANSWER_WITHIN_MS,
    onAway: (error) => log.debug({ error: String(error) }, "slots are given without Redis"),
  });
  const held = new Map<string, Set<string>>();
  let renewing: NodeJS.Timeout | undefined;

  const renew = async (): Promise<void> => {
    await Promise.allSettled(
      [...held].map(([key, tokens]) => renewScript(KEY_PREFIX + key, [leaseMs, ...tokens])),
    );
  };

  const hold = (key: string, token: string): void => {
    held.set(key, (held.get(key) ?? new Set()).add(token));
    renewing ??= setInterval(() => void renew(), leaseMs / RENEWALS).unref();
  };

  const free = (key: string, token: string): void => {
    const tokens = held.get(key);
    if (tokens?.delete(token) !== true) return;
    if (tokens.size === 0) held.delete(key);
    if (held.size === 0) {
      clearInterval(renewing);
      renewing = undefined;
    }
    releaseScript(KEY_PREFIX + key, [token]).catch(() => undefined);
  };

  return {
    take: async (key) => {
      const token = randomUUID();
      const taken = await breaker.ask(async () =>
        Number(await takeScript(KEY_PREFIX + key, [leaseMs, most, token])),
      );
      if (taken === 0) return null;
      if (taken === undefined) onUnshared?.();
      hold(key, token);
      return () => free(key, token);
    },
  };
};
