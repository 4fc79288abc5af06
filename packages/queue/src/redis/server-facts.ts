import { isRedisVersionLowerThan, RedisConnection } from "bullmq";

/** null: INFO does not say. */
export const isInClusterMode = (info: string): boolean | null => {
  const enabled = /^cluster_enabled:(\d)/m.exec(info)?.[1];
  return enabled === undefined ? null : enabled === "1";
};

export type RedisServerFacts = {
  readonly version: string | null;
  readonly maxmemoryPolicy: string | null;
  readonly appendOnly: boolean | null;
};

export const readServerFacts = (info: string): RedisServerFacts => {
  const field = (name: string): string | null =>
    new RegExp(`^${name}:(.+?)\\r?$`, "m").exec(info)?.[1] ?? null;
  const aof = field("aof_enabled");
  return {
    version: field("redis_version"),
    maxmemoryPolicy: field("maxmemory_policy"),
    appendOnly: aof === null ? null : aof === "1",
  };
};

export const problemsOf = ({ version, maxmemoryPolicy, appendOnly }: RedisServerFacts): string[] => {
  const problems: string[] = [];
  const wanted = RedisConnection.recommendedMinimumVersion;
  if (version !== null && isRedisVersionLowerThan(version, wanted, "redis")) {
    problems.push(`Redis is too old for the queue: use ${wanted} or newer`);
  }
  if (maxmemoryPolicy !== null && maxmemoryPolicy !== "noeviction") {
    problems.push("Redis may evict jobs: set maxmemory-policy to noeviction");
  }
  if (appendOnly === false) problems.push("Redis loses jobs when it restarts: set appendonly to yes");
  return problems;
};
