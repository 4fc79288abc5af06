import { randomUUID } from "node:crypto";
import type { Redis as Client } from "ioredis";
import { createScript } from "../redis/script.ts";

/** ARGV: token, length of the lock in ms. */
const TAKE = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;

/** ARGV: token, length of the lock in ms. */
const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/** ARGV: token. */
const RELEASE = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`;

/** One attempt to hold a lock, with a token of its own. All calls reject when Redis does not answer. */
export type RedisLock = {
  /** false: another holds the lock. */
  take(): Promise<boolean>;
  /** Extends the lock to its full length from now. false: it is not ours any more. */
  renew(): Promise<boolean>;
  /** Frees the lock if it is still ours, also when the answer to `take` was lost. */
  release(): Promise<void>;
};

/** Makes locks on keys of Redis. A lock that is neither renewed nor released ends after `ms`. */
export const createRedisLocks = (client: Client): ((key: string, ms: number) => RedisLock) => {
  const take = createScript(client, TAKE);
  const renew = createScript(client, RENEW);
  const release = createScript(client, RELEASE);
  return (key, ms) => {
    const token = randomUUID();
    return {
      take: async () => (await take(key, [token, ms])) === 1,
      renew: async () => (await renew(key, [token, ms])) === 1,
      release: async () => void (await release(key, [token])),
    };
  };
};
