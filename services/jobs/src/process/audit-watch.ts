import { createLoop, type Logger, type Metrics } from "@conversation-export/runtime";
import type { AuditStore, LastChange } from "@conversation-export/warehouse";

/** Shows in metrics what operators change, so that an alert can tell of it. */
export type AuditWatch = { start(): Promise<void>; stop(): Promise<void> };

export const createAuditWatch = (deps: {
  readonly store: Pick<AuditStore, "last">;
  readonly everyMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
}): AuditWatch => {
  const { store, everyMs, metrics, log } = deps;
  let known: readonly LastChange[] = [];

  metrics.gauge(
    "operator_change_timestamp_seconds",
    "When a command that changes something was last noted in the audit",
    ["command", "state"],
    (gauge) => {
      gauge.reset();
      for (const { at, ...labels } of known) gauge.set(labels, at);
    },
  );

  const ask = async (): Promise<void> => {
    try {
      known = await store.last();
    } catch (error) {
      log.warn({ err: error }, "the audit cannot be read");
    }
  };
  const watch = createLoop({ turn: ask, pauseMs: everyMs });
  return { start: async () => watch.start(), stop: watch.stop };
};
