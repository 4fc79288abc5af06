import type { Counter, Histogram, Metrics } from "@conversation-export/runtime";

/** `returned`: waits again after a shutdown or a lost lock. */
export type AttemptOutcome = "completed" | "failed" | "cancelled" | "returned" | "split";

export type AttemptMetrics = {
  readonly seconds: Histogram<"queue" | "outcome">;
  readonly failures: Counter<"queue" | "reason">;
  readonly stalls: Counter<"queue">;
};

const BUCKETS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400];

export const createAttemptMetrics = (metrics: Metrics): AttemptMetrics => ({
  seconds: metrics.histogram(
    "conversation_export_job_attempt_seconds",
    "how long attempts of jobs took",
    ["queue", "outcome"],
    BUCKETS,
  ),
  failures: metrics.counter(
    "conversation_export_job_failures_total",
    "attempts of jobs that failed, by code",
    ["queue", "reason"],
  ),
  stalls: metrics.counter(
    "conversation_export_job_stalls_total",
    "jobs whose worker was gone, and that wait again",
    ["queue"],
  ),
});
