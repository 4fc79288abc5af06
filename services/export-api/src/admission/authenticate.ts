import { parseKey } from "@conversation-export/runtime";
import type { ApiClient, Reader } from "@conversation-export/warehouse";
import { LRUCache } from "lru-cache";
import { type ApiError, clientMissing, unauthorized } from "../http/api-error.ts";
import type { AuthThrottle } from "./auth-throttle.ts";

const MAX_KEYS = 10_000;
const MAX_UNKNOWN_MS = 2_000;

/** Headers that may carry a key; it counts in the first alone. */
export type KeyHeaders = {
  readonly authorization?: string | undefined;
  readonly "x-api-key"?: string | readonly string[] | undefined;
};

/** Failures are counted by `address`. */
export type Authenticate = (headers: KeyHeaders, address: string) => Promise<ApiClient>;

/**
 * Finds the client of an Authorization header. A key that was valid before is accepted from any address.
 * @throws ApiError 401 for a missing, malformed, unknown or revoked key, 429 after too many failures of the
 * address, 404 for a key of a deleted client; the reader's error when the warehouse does not answer
 * @param deps.cacheMs how long an answer of the warehouse is cached; for an unknown key at most 2 s
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
  // fetch coalesces concurrent look-ups of one key; values are wrapped because the cache holds no null.
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

  // Keys that were valid at their last look-up: failures of others at the same address do not lock them out.
  const trusted = new LRUCache<string, true>({ max: MAX_KEYS });

  /** Running look-ups of new keys. Requests with the same key wait for them and are not counted. */
  const asking = new Map<string, Promise<ApiClient | null>>();

  const refuse = (address: string, what: Parameters<typeof unauthorized>[0]): ApiError => {
    throttle.failed(address);
    return unauthorized(what);
  };

  const findUnknown = async (hash: string, address: string): Promise<ApiClient | null> => {
    const attempt = throttle.attempt(address);
    const { client } = await keys.forceFetch(hash).catch((error: unknown) => {
      attempt.forgive();
      throw error;
    });
    if (client === null) attempt.refused();
    else {
      attempt.forgive();
      trusted.set(hash, true);
    }
    return client;
  };

  const findClient = async (hash: string, address: string): Promise<ApiClient | null> => {
    const cached = keys.get(hash);
    if (cached !== undefined) {
      onLookup("cached");
      if (cached.client === null) throw refuse(address, "unknown");
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

  return async (headers, address) => {
    const [scheme, token, ...rest] = headers.authorization?.trim().split(/ +/) ?? [];
    if (scheme === undefined || scheme === "") {
      throw refuse(address, headers["x-api-key"] === undefined ? "missing" : "elsewhere");
    }
    const key = scheme.toLowerCase() === "bearer" && rest.length === 0 ? parseKey(token ?? "") : undefined;
    if (key === undefined) {
      onLookup("malformed");
      throw refuse(address, "malformed");
    }
    const client = await findClient(key.hash, address);
    if (client === null) throw unauthorized("unknown");
    if (client.clientDeleted) throw clientMissing(client.clientId);
    return client;
  };
};
