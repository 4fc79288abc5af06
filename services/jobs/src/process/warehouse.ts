import { type Logger, type Metrics, retry } from "@conversation-export/runtime";
import { createPartCounts, createSession } from "@conversation-export/warehouse";
import type { Config } from "../config.ts";
import { createAnswerMonitor } from "./answer-monitor.ts";
import { registerPartMetrics } from "./part-metrics.ts";

/** More than all jobs need: a statement may take an hour. */
const WAREHOUSE_CONNECTIONS = 64;

export const createWarehouse = (deps: {
  readonly config: Pick<Config, "clickhouse" | "topology">;
  readonly application: string;
  readonly askEveryMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
}) => {
  const { config, application, askEveryMs, metrics, log } = deps;
  const session = createSession({
    ...config.clickhouse,
    application,
    topology: config.topology,
    maxConnections: WAREHOUSE_CONNECTIONS,
  });
  const watch = createAnswerMonitor({ name: "ClickHouse", ping: session.ping, everyMs: askEveryMs });
  const stopping = new AbortController();
  registerPartMetrics(metrics, createPartCounts({ session }));

  return {
    session,
    /** Rejects after `stop`. */
    start: async (): Promise<void> => {
      await watch.start();
      await retry(session.ping, {
        signal: stopping.signal,
        onRetry: (error, attempt) => {
          if (attempt === 1) log.warn({ error: String(error) }, "connecting to ClickHouse failed, retrying");
        },
      });
    },
    stop: async (): Promise<void> => {
      stopping.abort();
      await watch.stop();
      await session.close();
    },
    answers: watch.answers,
  };
};
