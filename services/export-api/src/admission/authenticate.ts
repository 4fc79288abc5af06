import { parseKey } from "@conversation-export/runtime";
import type { ApiClient, Reader } from "@conversation-export/warehouse";
import { LRUCache } from "lru-cache";
import { type ApiError, clientMissing, unauthorized } from "../http/api-error.ts";
import type { Attempt, AuthThrottle } from "./auth-throttle.ts";
import type { KnownKeys } from "./known-keys.ts";

const MAX_KEYS = 10_000;
const MAX_UNKNOWN_MS = 2_000;

/** A key counts only in `authorization`. */
export type KeyHeaders = {
  readonly authorization?: string | undefined;
  readonly "x-api-key"?: string | readonly string[] | undefined;
};

export type Authenticate = (headers: KeyHeaders, address: string) => Promise<ApiClient>;

/** @throws ApiError 401 or 404 when the key is no longer valid */
export type FindAgain = (headers: KeyHeaders, fresh: boolean) => Promise<ApiClient>;

/** Throw ApiError 401, 404 for a deleted client, or 429. */
export const createAuthenticate = (deps: {
  reader: Pick<Reader, "findKey">;
  cacheMs: number;
  clock: () => number;
  throttle: AuthThrottle;
  known: KnownKeys;
  onLookup: (result: "cached" | "asked" | "malformed") => void;
}): { readonly authenticate: Authenticate; readonly findAgain: FindAgain } => {
  const { reader, cacheMs, clock, throttle, known, onLookup } = deps;
  // Wrapped, because the cache holds no null.
  const keys = new LRUCache<string, { client: ApiClient | null }>({
    max: MAX_KEYS,
    ttl: cacheMs,
    ttlResolution: 0,
    perf: { now: clock },
    ignoreFetchAbort: true,
    // A fresh answer stays good when an earlier look-up fails.
    noDeleteOnFetchRejection: true,
    fetchMethod: async (hash, _stale, { options }) => {
      onLookup("asked");
      const client = await reader.findKey(hash);
      if (client === null) options.ttl = Math.min(cacheMs, MAX_UNKNOWN_MS);
      return { client };
    },
  });

  const asking = new Map<string, Promise<ApiClient | null>>();

  const refuse = (address: string, what: Parameters<typeof unauthorized>[0]): ApiError => {
    throttle.failed(address);
    return unauthorized(what);
  };

  const lookUp = async (hash: string, attempt: Attempt): Promise<ApiClient | null> => {
    try {
      const { client } = await keys.forceFetch(hash);
      if (client === null) return null;
      known.add(hash);
      attempt.forgive();
      return client;
    } catch (error) {
      attempt.forgive();
      throw error;
    } finally {
      asking.delete(hash);
    }
  };

  const findClient = async (hash: string, address: string): Promise<ApiClient | null> => {
    const cached = keys.get(hash);
    if (cached !== undefined) {
      onLookup("cached");
      if (cached.client === null) throw refuse(address, "unknown");
      return cached.client;
    }
    if (known.has(hash)) {
      const { client } = await keys.forceFetch(hash);
      if (client === null) known.remove(hash);
      return client;
    }
    const asked = asking.get(hash);
    if (asked !== undefined) {
      const client = await asked;
      if (client === null) throw refuse(address, "unknown");
      return client;
    }
    const attempt = throttle.attempt(address);
    const answer = lookUp(hash, attempt);
    asking.set(hash, answer);
    const client = await answer;
    if (client === null) attempt.refused();
    return client;
  };

  const live = (client: ApiClient | null): ApiClient => {
    if (client === null) throw unauthorized("unknown");
    if (client.clientDeleted) throw clientMissing(client.clientId);
    return client;
  };

  return {
    authenticate: async (headers, address) => {
      const { scheme, key } = readHeader(headers);
      if (scheme === "") {
        throw refuse(address, headers["x-api-key"] === undefined ? "missing" : "elsewhere");
      }
      if (key === undefined) {
        onLookup("malformed");
        throw refuse(address, "malformed");
      }
      return live(await findClient(key.hash, address));
    },
    findAgain: async (headers, fresh) => {
      const { key } = readHeader(headers);
      if (key === undefined) throw unauthorized("malformed");
      const { client } = await keys.forceFetch(key.hash, { forceRefresh: fresh });
      if (client === null) known.remove(key.hash);
      return live(client);
    },
  };
};

const readHeader = ({ authorization = "" }: KeyHeaders) => {
  const [scheme = "", token = "", ...rest] = authorization.trim().split(/ +/);
  const isBearer = scheme.toLowerCase() === "bearer" && rest.length === 0;
  return { scheme, key: isBearer ? parseKey(token) : undefined };
};
