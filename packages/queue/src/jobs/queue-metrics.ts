import type { Logger, Metrics } from "@conversation-export/runtime";
import { createJobQueues, type JobQueue, queuesOf } from "../contract/job-queues.ts";
import { JOB_NAMES } from "../contract/job.ts";
import { clientOf, type Redis } from "../redis/redis.ts";

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
  const queues = createJobQueues(clientOf(redis));
  const names = JOB_NAMES.flatMap(queuesOf);

  const forEach = async (visit: (queue: JobQueue, name: string) => Promise<void>): Promise<void> => {
    try {
      await Promise.all(names.map((name) => visit(queues.of(name), name)));
    } catch (error) {
      log.debug({ error: String(error) }, "the queues are not measured");
    }
  };

  metrics.gauge("conversation_export_job_queue_depth", "jobs by state", ["queue", "state"], async (gauge) => {
    gauge.reset();
    await forEach(async (queue, name) => {
      const counts = await queue.getJobCounts(...STATES);
      for (const state of STATES) gauge.set({ queue: name, state }, counts[state] ?? 0);
    });
  });
  metrics.gauge(
    "conversation_export_job_oldest_waiting_age_seconds",
    "for how long the oldest job that could run has waited, at most since its last attempt began",
    ["queue"],
    async (gauge) => {
      gauge.reset();
      await forEach(async (queue, name) => {
        const [oldest] = await queue.getJobs(["waiting"], 0, 0, true);
        // BullMQ does not store when a job was given back; it has waited at most since its last attempt.
        const since =
          oldest === undefined
            ? now()
            : Math.max(oldest.timestamp + (oldest.opts.delay ?? 0), oldest.processedOn ?? 0);
        gauge.set({ queue: name }, Math.max(now() - since, 0) / 1000);
      });
    },
  );
};
