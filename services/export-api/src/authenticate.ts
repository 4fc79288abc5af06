import { parseKey } from "@conversation-export/runtime";
import type { ApiClient, Reader } from "@conversation-export/warehouse";
import { LRUCache } from "lru-cache";
import { type ApiError, clientMissing, unauthorized } from "./api-error.ts";
import type { AuthThrottle } from "./auth-throttle.ts";

const MAX_KEYS = 10_000;
const MAX_UNKNOWN_MS = 2_000;

/** `address` is that of the caller, for counting failures. */
export type Authenticate = (authorization: string | undefined, address: string) => Promise<ApiClient>;

/**
 * Checks the value of an Authorization header. Throws `ApiError` 401 for a missing, malformed, unknown or revoked
 * key, 429 when the address has failed too often, 404 for a key of a deleted client, and the reader's error when
 * the warehouse cannot be asked. A key that was good before passes from any address.
 * @param deps.cacheMs for how long an answer of the warehouse holds; unknown keys are asked again after 2 s at most
 * @param deps.clock milliseconds that never run backwards
 */
export const createAuthenticate = (deps: {
  reader: Pick<Reader, "findKey">;
  cacheMs: number;
  clock: () => number;
  throttle: AuthThrottle;
  onLookup: (result: "cached" | "asked" | "malformed") => void;
}): Authenticate => {
  const { reader, cacheMs, clock, throttle, onLookup } = deps;
  // fetch coalesces concurrent look-ups of one key; values are wrapped since null is no value to the cache.
  const keys = new LRUCache<string, { client: ApiClient | null }>({
    max: MAX_KEYS,
    ttl: cacheMs,
    ttlResolution: 0,
    perf: { now: clock },
    ignoreFetchAbort: true,
    fetchMethod: async (hash, _stale, { options }) => {
      onLookup("asked");
      const client = await reader.findKey(hash);
      if (client === null) options.ttl = Math.min(cacheMs, MAX_UNKNOWN_MS);
      return { client };
    },
  });

  // Keys that were good when last asked about: others who share their address cannot lock them out.
  const trusted = new LRUCache<string, true>({ max: MAX_KEYS });

  /** Look-ups of keys that were never seen: who brings the same one meanwhile waits and is not counted. */
  const asking = new Map<string, Promise<ApiClient | null>>();

  const refuse = (address: string, given: boolean): ApiError => {
    throttle.check(address);
    throttle.failed(address);
    return unauthorized(given);
  };

  /** Counts before it asks, and takes that back: guesses that come at once must not all reach the warehouse. */
  const findUnknown = async (hash: string, address: string): Promise<ApiClient | null> => {
    throttle.check(address);
    throttle.failed(address);
    let good = true;
    try {
      const { client } = await keys.forceFetch(hash);
      if (client === null) good = false;
      else trusted.set(hash, true);
      return client;
    } finally {
      if (good) throttle.forgive(address);
    }
  };

  const findClient = async (hash: string, address: string): Promise<ApiClient | null> => {
    const cached = keys.get(hash);
    if (cached !== undefined) {
      onLookup("cached");
      if (cached.client === null) throw refuse(address, true);
      return cached.client;
    }
    if (trusted.has(hash)) {
      const { client } = await keys.forceFetch(hash);
      if (client === null) trusted.delete(hash);
      return client;
    }
    const asked = asking.get(hash);
    if (asked !== undefined) return asked;
    const answer = findUnknown(hash, address);
    asking.set(hash, answer);
    try {
      return await answer;
    } finally {
      asking.delete(hash);
    }
  };

  return async (authorization, address) => {
    const [scheme, token, ...rest] = authorization?.trim().split(/ +/) ?? [];
    if (scheme === undefined || scheme === "") throw refuse(address, false);
    const key = scheme.toLowerCase() === "bearer" && rest.length === 0 ? parseKey(token ?? "") : undefined;
    if (key === undefined) {
      onLookup("malformed");
      throw refuse(address, true);
    }
    const client = await findClient(key.hash, address);
    if (client === null) throw unauthorized(true);
    if (client.clientDeleted) throw clientMissing(client.clientId);
    return client;
  };
};
