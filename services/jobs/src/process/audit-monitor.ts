import { createLoop, type Logger, type Loop, type Metrics } from "@conversation-export/runtime";
import type { AuditStore, LastChange } from "@conversation-export/warehouse";

export const createAuditMonitor = (deps: {
  readonly store: Pick<AuditStore, "last">;
  readonly everyMs: number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly metrics: Metrics;
  readonly log: Logger;
}): Loop => {
  const { store, everyMs, elapsed, metrics, log } = deps;
  let known: readonly LastChange[] = [];
  let askedAt = elapsed();

  metrics.gauge(
    "conversation_export_operator_change_age_seconds",
    "How long ago a command that changes something was last noted in the audit",
    ["command", "state"],
    (gauge) => {
      gauge.reset();
      const since = (elapsed() - askedAt) / 1000;
      for (const { ageSeconds, ...labels } of known) gauge.set(labels, ageSeconds + since);
    },
  );

  const ask = async (): Promise<void> => {
    try {
      known = await store.last();
      askedAt = elapsed();
    } catch (error) {
      log.warn({ err: error }, "reading the audit failed");
    }
  };
  return createLoop({ turn: ask, pauseMs: everyMs });
};
