import type { Logger, Metrics } from "@conversation-export/runtime";
import { createJobQueues, queuesOf } from "../contract/job-queues.ts";
import { JOB_NAMES } from "../contract/job.ts";
import { clientOf, type Redis } from "../redis/redis.ts";
import { readOldestWaiting } from "./queue-backlog.ts";

const STATES = [
  "waiting",
  "prioritized",
  "delayed",
  "active",
  "waiting-children",
  "completed",
  "failed",
] as const;

/** Without Redis the series are absent. */
export const registerQueueMetrics = (deps: {
  readonly redis: Redis;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly now: () => number;
}): void => {
  const { redis, metrics, log, now } = deps;
  const client = clientOf(redis);
  const queues = createJobQueues(client);
  const names = JOB_NAMES.flatMap(queuesOf);

  const forEach = async (visit: (name: string) => Promise<void>): Promise<void> => {
    try {
      await Promise.all(names.map(visit));
    } catch (error) {
      log.debug({ error: String(error) }, "the queues are not measured");
    }
  };

  metrics.gauge("conversation_export_job_queue_depth", "jobs by state", ["queue", "state"], async (gauge) => {
    gauge.reset();
    await forEach(async (name) => {
      const counts = await queues.of(name).getJobCounts(...STATES);
      for (const state of STATES) gauge.set({ queue: name, state }, counts[state] ?? 0);
    });
  });
  metrics.gauge(
    "conversation_export_job_oldest_waiting_age_seconds",
    "for how long the oldest job that could run has waited, at most since its last attempt began",
    ["queue"],
    async (gauge) => {
      gauge.reset();
      await forEach(async (name) => {
        const since = (await readOldestWaiting(client, name)) ?? now();
        gauge.set({ queue: name }, Math.max(now() - since, 0) / 1000);
      });
    },
  );
};
