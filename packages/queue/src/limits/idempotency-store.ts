import { createHmac, randomUUID } from "node:crypto";
import { deriveKey } from "@conversation-export/runtime";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";
import { createScript, NOW } from "../redis/script.ts";

const KEY_PREFIX = "conversation-export:idempotency:";

// KEYS: the names of one key, by each secret; one of them is enough.

/** ARGV: a fingerprint for each name, token, id, lease ms, memory ms. */
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

/** ARGV: token, result, memory ms. */
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
  | {
      readonly state: "claimed";
      readonly token: string;
      /** false: an earlier claim ended unsettled, its work may be done. */
      readonly fresh: boolean;
      /** The same for all claims until the key is released or forgotten. */
      readonly id: string;
    }
  | { readonly state: "done"; readonly result: string }
  | { readonly state: "running" }
  | { readonly state: "other" };

/** All calls throw `redis_unavailable`. */
export type IdempotencyStore = {
  claim(scope: string, key: string, work: string): Promise<Claim>;
  /** false: another claim took the key after the lease. */
  complete(scope: string, key: string, token: string, result: string): Promise<boolean>;
  /** The work was certainly not done: any work may use the key. */
  release(scope: string, key: string, token: string): Promise<void>;
  /** The work may be done: only the same may be claimed. */
  abandon(scope: string, key: string, token: string): Promise<void>;
};

/** Keyed hashes, because work may be guessable, such as a phone number. */
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
