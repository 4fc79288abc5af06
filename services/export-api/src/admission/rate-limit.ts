import type { RateWindow } from "@conversation-export/domain";
import type { RateLimiter } from "@conversation-export/queue";
import type { Metrics } from "@conversation-export/runtime";
import type { ApiClient } from "@conversation-export/warehouse";
import type { FastifyReply } from "fastify";
import { rateLimitExceeded } from "../http/api-error.ts";
import type { LimitName } from "@conversation-export/warehouse";

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

export type RateLimitMetrics = ReturnType<typeof createRateLimitMetrics>;

export const createRateLimitMetrics = (metrics: Metrics) => ({
  limited: metrics.counter(
    "conversation_export_api_rate_limited_total",
    "Requests refused by a rate limit.",
    ["limit"],
  ),
  unshared: metrics.counter(
    "conversation_export_api_rate_limit_unshared_total",
    "Requests counted by this process alone, since Redis did not answer.",
  ),
});

export type RateLimit = {
  /** Sets X-RateLimit headers (specification, section 8). @throws ApiError 429 */
  admit(
    client: Pick<ApiClient, "clientId" | "rateLimits">,
    limit: LimitName,
    reply: Pick<FastifyReply, "headers">,
  ): Promise<void>;
};

/** `defaults` are for clients without their own windows. */
export const createRateLimit = (deps: {
  readonly limiter: RateLimiter;
  readonly defaults: Readonly<Record<LimitName, readonly RateWindow[]>>;
  readonly metrics: Pick<RateLimitMetrics, "limited">;
}): RateLimit => {
  const { limiter, defaults, metrics } = deps;
  return {
    admit: async (client, limit, reply) => {
      const windows = client.rateLimits[limit] ?? defaults[limit];
      if (windows.length === 0) return;
      const allowance = await limiter.consume(`${client.clientId}:${limit}`, windows);
      reply.headers({
        "x-ratelimit-limit": String(allowance.limit),
        "x-ratelimit-remaining": String(allowance.remaining),
        "x-ratelimit-reset": String(allowance.resetAt),
      });
      if (allowance.allowed) return;
      metrics.limited.inc({ limit });
      throw rateLimitExceeded(describeRate(allowance.window), allowance.retryAfter);
    },
  };
};

export const describeRate = ({ requests, seconds }: RateWindow, what = "request"): string => {
  const [unit, size] = UNITS.find(([, length]) => seconds % length === 0) ?? ["second", 1];
  return `${counted(requests, what)} per ${counted(seconds / size, unit)}`;
};

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
