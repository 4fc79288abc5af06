import { randomUUID } from "node:crypto";
import type { Redis as Client } from "ioredis";
import { createScript, NOW, SERVER_RUN } from "../redis/script.ts";

/** ARGV: token, ms. */
const TAKE_FREE = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;

/** A hash: the `run` in which locks are given out, `since` in ms. */
const SERVER_KEY = "conversation-export:lock-server";

/**
 * A restarted or promoted server may have lost a live lock: it gives none until that ended, unless it has no such hash.
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

/** ARGV: token, ms. */
const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/** ARGV: token. */
const RELEASE = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`;

export type RedisLock = {
  /** null: another may hold it; the server may have lost its key. */
  take(): Promise<boolean | null>;
  renew(): Promise<boolean>;
  /** Also when the answer to `take` was lost. */
  release(): Promise<void>;
};

/** `atOnce` also gives out a lock that the server may have lost in a restart or failover. */
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
