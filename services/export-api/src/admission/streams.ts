import type { SharedSlots } from "@conversation-export/queue";
import { rateLimitExceeded } from "../http/api-error.ts";
import type { RateLimitMetrics } from "./rate-limit.ts";

const RETRY_AFTER_SECONDS = 10;

/**
 * Streams of lines of one client at a time, over all processes: each holds a slot for as long as it is read.
 */
export type Streams = {
  /**
   * Returns the function that ends the stream. @throws ApiError 429 when the client has as many as allowed
   */
  begin(clientId: string): Promise<() => void>;
};

export const createStreams = (deps: {
  readonly slots: SharedSlots;
  readonly most: number;
  readonly metrics: Pick<RateLimitMetrics, "limited">;
}): Streams => ({
  begin: async (clientId) => {
    const release = await deps.slots.take(`streams:${clientId}`);
    if (release !== null) return release;
    deps.metrics.limited.inc({ limit: "streams" });
    throw rateLimitExceeded(`${deps.most} streams of lines at a time`, RETRY_AFTER_SECONDS);
  },
});
