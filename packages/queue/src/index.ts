export type { Allowance } from "./allowance.ts";
export {
  createErasureQueue,
  type ErasureJob,
  type ErasureQueue,
  type ErasureStatus,
} from "./erasure-queue.ts";
export { type Claim, createIdempotencyStore, type IdempotencyStore } from "./idempotency-store.ts";
export { createMemoryLimiter, type MemoryLimiter } from "./memory-limiter.ts";
export { createRateLimiter, type RateLimiter } from "./rate-limiter.ts";
export { createRedis, type Redis } from "./redis.ts";
export type { RedisServerFacts } from "./server-facts.ts";
