import { createHash, randomUUID } from "node:crypto";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW } from "../redis/script.ts";

const KEY_PREFIX = "conversation-export:idempotency:";

/** ARGV: fingerprint, token, length of the lease and of remembering in ms. */
const CLAIM = `${NOW}
local found = redis.call('HMGET', KEYS[1], 'fingerprint', 'result', 'leased_until')
local fresh = found[1] and '0' or '1'
if found[1] then
  if found[1] ~= ARGV[1] then return {'other'} end
  if found[2] then return {'done', found[2]} end
  if tonumber(found[3]) > now then return {'running'} end
end
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'token', ARGV[2],
  'leased_until', string.format('%.0f', now + ARGV[3]))
redis.call('HSETNX', KEYS[1], 'since', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'claimed', fresh, redis.call('HGET', KEYS[1], 'since')}
`;

/** ARGV: token, result, length of remembering in ms. */
const COMPLETE = `
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'result', ARGV[2])
redis.call('HDEL', KEYS[1], 'token', 'leased_until')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`;

/** ARGV: token. */
const RELEASE = `
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/** ARGV: token. */
const ABANDON = `
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'token')
return redis.call('HSET', KEYS[1], 'leased_until', 0)
`;

export type Claim =
  /** The claim succeeded: the caller does the work. */
  | {
      readonly state: "claimed";
      /** Identifies this claim. */
      readonly token: string;
      /** false: another claim expired or was abandoned; its work may be done. */
      readonly fresh: boolean;
      /** Instant of the first claim of the key, in ms by the clock of Redis. */
      readonly since: number;
    }
  /** The work was done before, with this result. */
  | { readonly state: "done"; readonly result: string }
  /** Another claim holds the key. */
  | { readonly state: "running" }
  /** The key was used with another fingerprint. */
  | { readonly state: "other" };

/**
 * Remembers finished work by key, for all processes together.
 * @throws ServiceError `redis_unavailable` in all calls
 */
export type IdempotencyStore = {
  /** `scope` names the owner of the key, `fingerprint` the work that is asked for. */
  claim(scope: string, key: string, fingerprint: string): Promise<Claim>;
  /** Stores the result. false: the lease had expired and another claim took the key. */
  complete(scope: string, key: string, token: string, result: string): Promise<boolean>;
  /** Forgets a key whose work was certainly not done: it may be used for any work at once. */
  release(scope: string, key: string, token: string): Promise<void>;
  /** Ends the lease of a claim whose work may be done: only the same work may be claimed, at once. */
  abandon(scope: string, key: string, token: string): Promise<void>;
};

/**
 * @param deps.ttlSeconds for how long a key is remembered after its last claim or its completion
 * @param deps.leaseMs after so long a claim that was not settled can be taken by another
 */
export const createIdempotencyStore = (deps: {
  readonly redis: Redis;
  readonly ttlSeconds: number;
  readonly leaseMs: number;
}): IdempotencyStore => {
  const { redis, leaseMs } = deps;
  const ttlMs = deps.ttlSeconds * 1000;
  const client = clientOf(redis);
  const claimScript = createScript(client, CLAIM);
  const completeScript = createScript(client, COMPLETE);
  const releaseScript = createScript(client, RELEASE);
  const abandonScript = createScript(client, ABANDON);

  return {
    claim: async (scope, key, fingerprint) => {
      const token = randomUUID();
      const args = [fingerprint, token, leaseMs, ttlMs];
      const answer = (await askRedis(() => claimScript(nameOf(scope, key), args))) as string[];
      const [state, detail = "", since] = answer;
      switch (state) {
        case "claimed":
          return { state, token, fresh: detail === "1", since: Number(since) };
        case "done":
          return { state, result: detail };
        case "running":
        case "other":
          return { state };
        default:
          throw new TypeError(`unknown state of a claim: ${state}`);
      }
    },
    complete: async (scope, key, token, result) =>
      (await askRedis(() => completeScript(nameOf(scope, key), [token, result, ttlMs]))) === 1,
    release: async (scope, key, token) =>
      void (await askRedis(() => releaseScript(nameOf(scope, key), [token]))),
    abandon: async (scope, key, token) =>
      void (await askRedis(() => abandonScript(nameOf(scope, key), [token]))),
  };
};

/** A digest, since callers choose the key: any length, any characters, perhaps personal data. */
const nameOf = (scope: string, key: string): string =>
  KEY_PREFIX +
  createHash("sha256")
    .update(JSON.stringify([scope, key]))
    .digest("hex");
