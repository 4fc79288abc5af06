import type { SharedSlots } from "@conversation-export/queue";
import { quotaExceeded } from "../http/api-error.ts";
import type { RateLimitMetrics } from "./rate-limit.ts";

const RETRY_AFTER_SECONDS = 10;

/** Over all processes. */
export type ClientBound = {
  /** Returns the function that ends it. @throws ApiError 429 */
  begin(clientId: string): Promise<() => void>;
};

export const createClientBound = (deps: {
  readonly what: "pages" | "streams";
  readonly slots: SharedSlots;
  readonly most: number;
  readonly metrics: Pick<RateLimitMetrics, "limited">;
}): ClientBound => {
  const { what, slots, most, metrics } = deps;
  return {
    begin: async (clientId) => {
      const release = await slots.take(`${what}:${clientId}`);
      if (release !== null) return release;
      metrics.limited.inc({ limit: what });
      throw quotaExceeded(`allowed: ${most} ${what} at a time`, RETRY_AFTER_SECONDS);
    },
  };
};
