import { createLoop, type Logger, type Loop, type Metrics } from "@conversation-export/runtime";
import type { OpenRequests, RequestCompletion } from "@conversation-export/warehouse";

export const createErasureDeadline = (deps: {
  readonly requests: Pick<RequestCompletion, "open">;
  readonly deadlineMs: number;
  readonly everyMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly now: () => number;
}): Loop => {
  const { requests, deadlineMs, metrics, log, now } = deps;
  let known: OpenRequests | undefined;
  let overdueBefore = 0;

  const gauge = (name: string, help: string, of: (open: OpenRequests) => number): void => {
    metrics.gauge(name, help, [], (one) => {
      if (known !== undefined) one.set(of(known));
    });
  };
  gauge(
    "conversation_export_erasure_open_requests",
    "Requests for erasure that are not finished",
    ({ count }) => count,
  );
  gauge(
    "conversation_export_erasure_awaiting_approval_requests",
    "Requests for erasure that wait for the approval of an operator",
    ({ awaitingApproval }) => awaitingApproval,
  );
  gauge(
    "conversation_export_erasure_oldest_request_age_seconds",
    "Age of the oldest request for erasure that is not finished, 0 when there is none",
    ({ oldestReceivedAt }) => (oldestReceivedAt === null ? 0 : Math.max(0, now() - oldestReceivedAt) / 1000),
  );
  gauge(
    "conversation_export_erasure_overdue_requests",
    "Requests for erasure that are older than the deadline",
    ({ overdue }) => overdue,
  );

  const ask = async (): Promise<void> => {
    try {
      known = await requests.open(now() - deadlineMs);
      if (known.overdue > overdueBefore)
        log.error({ requests: known.overdue }, "requests for erasure are overdue");
      overdueBefore = known.overdue;
    } catch (error) {
      log.warn({ err: error }, "the requests for erasure cannot be read");
    }
  };

  return createLoop({ turn: ask, pauseMs: deps.everyMs });
};
