import type { Admin, TopicPartition } from "@conversation-export/bus";
import { createLoop, type Logger, type Loop } from "@conversation-export/runtime";
import type { IngestMetrics } from "../ingest-metrics.ts";

/** An unknown lag never shows as 0. */
export const createLagMonitor = (deps: {
  readonly admin: Pick<Admin, "start" | "stop" | "fetchLag">;
  readonly groupId: string;
  readonly topics: readonly string[];
  readonly assigned: () => readonly TopicPartition[];
  readonly intervalMs: number;
  readonly metrics: IngestMetrics;
  readonly log: Logger;
}): Loop => {
  const { admin, groupId, topics, assigned, intervalMs, metrics, log } = deps;

  const setLags = async (): Promise<void> => {
    const owned = new Set(assigned().map(({ topic, partition }) => `${topic}/${partition}`));
    const lags = await admin.fetchLag(groupId, topics);
    metrics.lag.reset();
    metrics.lagUnknown.reset();
    for (const { topic, partition, lag } of lags) {
      if (!owned.has(`${topic}/${partition}`)) continue;
      metrics.lagUnknown.set({ topic, partition }, 0);
      metrics.lag.set({ topic, partition }, lag);
    }
  };

  const look = async (): Promise<void> => {
    try {
      await setLags();
    } catch (error) {
      metrics.lag.reset();
      for (const { topic, partition } of assigned()) metrics.lagUnknown.set({ topic, partition }, 1);
      log.warn({ err: error }, "reading the lag failed");
    }
  };

  const watch = createLoop({ turn: look, pauseMs: intervalMs });

  return {
    start: async () => {
      await admin.start();
      await watch.start();
    },
    stop: async () => {
      const stopped = watch.stop();
      // Ends a request that waits for a coordinator.
      await admin.stop();
      await stopped;
    },
  };
};
