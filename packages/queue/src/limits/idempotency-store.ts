import { createHmac, randomUUID } from "node:crypto";
import { deriveKey } from "@conversation-export/runtime";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW } from "../redis/script.ts";

const KEY_PREFIX = "conversation-export:idempotency:";

// KEYS: the names of one key, by each secret; one of them is enough.

/** ARGV: a fingerprint for each name, then token, id, length of the lease and of remembering in ms. */
const CLAIM = `${NOW}
local token, id, lease, ttl = ARGV[#KEYS + 1], ARGV[#KEYS + 2], ARGV[#KEYS + 3], ARGV[#KEYS + 4]
local fresh, running = '1', false
for place, name in ipairs(KEYS) do
  local found = redis.call('HMGET', name, 'fingerprint', 'result', 'leased_until', 'id')
  if found[1] then
    if found[1] ~= ARGV[place] then return {'other'} end
    if found[2] then return {'done', found[2]} end
    if tonumber(found[3]) > now then running = true end
    fresh, id = '0', found[4]
  end
end
if running then return {'running'} end
for place, name in ipairs(KEYS) do
  redis.call('HSET', name, 'fingerprint', ARGV[place], 'token', token, 'id', id,
    'leased_until', string.format('%.0f', now + lease))
  redis.call('PEXPIRE', name, ttl)
end
return {'claimed', fresh, id}
`;

/** ARGV: token, result, length of remembering in ms. */
const COMPLETE = `
for _, name in ipairs(KEYS) do
  if redis.call('HGET', name, 'token') ~= ARGV[1] then return 0 end
end
for _, name in ipairs(KEYS) do
  redis.call('HSET', name, 'result', ARGV[2])
  redis.call('HDEL', name, 'token', 'leased_until')
  redis.call('PEXPIRE', name, ARGV[3])
end
return 1
`;

/** ARGV: token. */
const RELEASE = `
for _, name in ipairs(KEYS) do
  if redis.call('HGET', name, 'token') == ARGV[1] then redis.call('DEL', name) end
end
`;

/** ARGV: token. */
const ABANDON = `
for _, name in ipairs(KEYS) do
  if redis.call('HGET', name, 'token') == ARGV[1] then
    redis.call('HDEL', name, 'token')
    redis.call('HSET', name, 'leased_until', 0)
  end
end
`;

export type Claim =
  /** The claim succeeded: the caller does the work. */
  | {
      readonly state: "claimed";
      /** Identifies this claim. */
      readonly token: string;
      /** false: another claim expired or was abandoned; its work may be done. */
      readonly fresh: boolean;
      /** Names the work: all claims of the key have the same, until it is released or forgotten. */
      readonly id: string;
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
  /** `scope` names the owner of the key; `work` is what is asked for, as text. */
  claim(scope: string, key: string, work: string): Promise<Claim>;
  /** Stores the result. false: the lease had expired and another claim took the key. */
  complete(scope: string, key: string, token: string, result: string): Promise<boolean>;
  /** Forgets a key whose work was certainly not done: it may be used for any work at once. */
  release(scope: string, key: string, token: string): Promise<void>;
  /** Ends the lease of a claim whose work may be done: only the same work may be claimed, at once. */
  abandon(scope: string, key: string, token: string): Promise<void>;
};

/**
 * Keys and work are stored as keyed hashes, since work may be guessable, such as a phone number.
 * @param deps.secrets the secret in use, and that before or after it during a change
 * @param deps.ttlSeconds for how long a key is remembered after its last claim or its completion
 * @param deps.leaseMs after so long a claim that was not settled can be taken by another
 */
export const createIdempotencyStore = (deps: {
  readonly redis: Redis;
  readonly secrets: readonly string[];
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
  const hashKeys = deps.secrets.map((secret) => deriveKey(secret, "idempotency"));

  /** The hash of the parts by each secret. */
  const hashesOf = (parts: readonly string[]): string[] =>
    hashKeys.map((hashKey) => createHmac("sha256", hashKey).update(JSON.stringify(parts)).digest("hex"));
  const namesOf = (scope: string, key: string): string[] =>
    hashesOf(["key", scope, key]).map((hash) => KEY_PREFIX + hash);

  return {
    claim: async (scope, key, work) => {
      const token = randomUUID();
      const args = [...hashesOf(["work", scope, key, work]), token, randomUUID(), leaseMs, ttlMs];
      const answer = (await askRedis(() => claimScript(namesOf(scope, key), args))) as string[];
      const [state, detail = "", id = ""] = answer;
      switch (state) {
        case "claimed":
          return { state, token, fresh: detail === "1", id };
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
      (await askRedis(() => completeScript(namesOf(scope, key), [token, result, ttlMs]))) === 1,
    release: async (scope, key, token) =>
      void (await askRedis(() => releaseScript(namesOf(scope, key), [token]))),
    abandon: async (scope, key, token) =>
      void (await askRedis(() => abandonScript(namesOf(scope, key), [token]))),
  };
};
