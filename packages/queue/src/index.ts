export { createRedis, type Redis } from "./redis.ts";
export type { RedisServerFacts } from "./server-facts.ts";
