import { askRedis, clientOf, type Redis } from "../redis/redis.ts";

/** Among the keys of rate limits, to which the same Redis users have rights. */
const KEY = "conversation-export:rate:key-uses";

/** ms since the epoch by key id; calls throw `redis_unavailable`. */
export type KeyUses = {
  note(uses: ReadonlyMap<string, number>): Promise<void>;
  list(): Promise<ReadonlyMap<string, number>>;
};

export const createKeyUses = ({ redis }: { readonly redis: Redis }): KeyUses => {
  const client = clientOf(redis);
  return {
    note: async (uses) => {
      if (uses.size > 0) await askRedis(() => client.hset(KEY, new Map(uses)));
    },
    list: async () => {
      const stored = await askRedis(() => client.hgetall(KEY));
      return new Map(Object.entries(stored).map(([keyId, at]) => [keyId, Number(at)]));
    },
  };
};
