import { randomUUID } from "node:crypto";
import type { Redis as Client } from "ioredis";
import { createScript, NOW, SERVER_RUN } from "../redis/script.ts";

/** ARGV: token, length of the lock in ms. */
const TAKE_FREE = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;

/** A hash: the `run` in which locks are given out, and `since` when, in ms. */
const SERVER_KEY = "conversation-export:lock-server";

/**
 * A restarted or promoted server may have lost a lock that is in use: it gives out none until that has ended,
 * unless it has no keys.
 */
const TAKE = `${NOW}${SERVER_RUN}
local known = redis.call('HGET', '${SERVER_KEY}', 'run')
if known ~= run then
  redis.call('HSET', '${SERVER_KEY}', 'run', run, 'since', known and string.format('%.0f', now) or '0')
end
local since = tonumber(redis.call('HGET', '${SERVER_KEY}', 'since'))
if since > now then
  since = now
  redis.call('HSET', '${SERVER_KEY}', 'since', string.format('%.0f', now))
end
if now - since < tonumber(ARGV[2]) then return redis.call('EXISTS', KEYS[1]) - 1 end
${TAKE_FREE}
`;

/** ARGV: token, length of the lock in ms. */
const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/** ARGV: token. */
const RELEASE = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`;

/** One attempt to hold a lock, with a token of its own. All calls reject when Redis does not answer. */
export type RedisLock = {
  /** false: another holds the lock. null: another may hold it, since the server may have lost its key. */
  take(): Promise<boolean | null>;
  /** Extends the lock to its full length from now. false: it is not ours any more. */
  renew(): Promise<boolean>;
  /** Frees the lock if it is still ours, also when the answer to `take` was lost. */
  release(): Promise<void>;
};

/**
 * Makes locks on keys of Redis. A lock that is neither renewed nor released ends after `ms`.
 * @param options.atOnce also gives out a lock that the server may have lost in a restart or failover
 */
export const createRedisLocks = (
  client: Client,
  options: { readonly atOnce?: boolean } = {},
): ((key: string, ms: number) => RedisLock) => {
  const take = createScript(client, options.atOnce === true ? TAKE_FREE : TAKE);
  const renew = createScript(client, RENEW);
  const release = createScript(client, RELEASE);
  return (key, ms) => {
    const token = randomUUID();
    return {
      take: async () => {
        const answer = await take(key, [token, ms]);
        return answer === -1 ? null : answer === 1;
      },
      renew: async () => (await renew(key, [token, ms])) === 1,
      release: async () => void (await release(key, [token])),
    };
  };
};
