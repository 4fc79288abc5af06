import { parseKey } from "@conversation-export/runtime";
import type { ApiClient, Reader } from "@conversation-export/warehouse";
import { LRUCache } from "lru-cache";
import { clientMissing, unauthorized } from "./api-error.ts";

const MAX_KEYS = 10_000;
const MAX_UNKNOWN_MS = 2_000;

export type Authenticate = (authorization: string | undefined) => Promise<ApiClient>;

/**
 * Checks the value of an Authorization header. Throws `ApiError` 401 for a missing, malformed, unknown or revoked
 * key and 404 for a key of a deleted client, and the reader's error when the warehouse cannot be asked.
 * @param deps.cacheMs for how long an answer of the warehouse holds; unknown keys are asked again after 2 s at most
 * @param deps.clock milliseconds that never run backwards
 */
export const createAuthenticate = (deps: {
  reader: Pick<Reader, "findKey">;
  cacheMs: number;
  clock: () => number;
  onLookup: (result: "cached" | "asked" | "malformed") => void;
}): Authenticate => {
  const { reader, cacheMs, clock, onLookup } = deps;
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

  const findClient = async (hash: string): Promise<ApiClient | null> => {
    const cached = keys.get(hash);
    if (cached !== undefined) {
      onLookup("cached");
      return cached.client;
    }
    return (await keys.forceFetch(hash)).client;
  };

  return async (authorization) => {
    const [scheme, token, ...rest] = authorization?.trim().split(/ +/) ?? [];
    if (scheme === undefined || scheme === "") throw unauthorized(false);
    const key = scheme.toLowerCase() === "bearer" && rest.length === 0 ? parseKey(token ?? "") : undefined;
    if (key === undefined) {
      onLookup("malformed");
      throw unauthorized(true);
    }
    const client = await findClient(key.hash);
    if (client === null) throw unauthorized(true);
    if (client.clientDeleted) throw clientMissing(client.clientId);
    return client;
  };
};
