import { createLoop, type Logger, type Metrics } from "@conversation-export/runtime";
import type { RequestCompletion } from "@conversation-export/warehouse";

/** Watches the age of unfinished requests for erasure. */
export type ErasureDeadline = { start(): Promise<void>; stop(): Promise<void> };

/** @param deps.deadlineMs age from which a request is overdue
 * @param deps.now ms since the epoch */
export const createErasureDeadline = (deps: {
  readonly requests: Pick<RequestCompletion, "unfinished">;
  readonly deadlineMs: number;
  readonly everyMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly now: () => number;
}): ErasureDeadline => {
  const { requests, deadlineMs, metrics, log, now } = deps;
  let received: readonly number[] = [];
  let known = false;
  let overdueBefore = 0;

  const overdue = (): number => received.filter((at) => now() - at > deadlineMs).length;

  metrics.gauge("erasure_open_requests", "Requests for erasure that are not finished", [], (gauge) => {
    if (known) gauge.set(received.length);
  });
  metrics.gauge(
    "erasure_oldest_request_age_seconds",
    "Age of the oldest request for erasure that is not finished, 0 when there is none",
    [],
    (gauge) => {
      if (known) gauge.set(received.length === 0 ? 0 : Math.max(0, now() - Math.min(...received)) / 1000);
    },
  );
  metrics.gauge(
    "erasure_overdue_requests",
    "Requests for erasure that are older than the deadline",
    [],
    (gauge) => {
      if (known) gauge.set(overdue());
    },
  );

  const ask = async (): Promise<void> => {
    try {
      received = (await requests.unfinished()).map(({ receivedAt }) => receivedAt);
      known = true;
      const late = overdue();
      if (late > overdueBefore) log.error({ requests: late }, "requests for erasure are overdue");
      overdueBefore = late;
    } catch (error) {
      log.warn({ err: error }, "the requests for erasure cannot be read");
    }
  };

  const watch = createLoop({ turn: ask, pauseMs: deps.everyMs });

  return {
    start: async () => watch.start(),
    stop: watch.stop,
  };
};
