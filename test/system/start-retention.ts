import { createJobWorkers, createSchedules, retentionJob, runJob } from "@conversation-export/queue";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import { expect } from "vitest";

/** The workers only note their client in `ran`. */
export const startRetention = async (url: string, stops: (() => Promise<unknown>)[]) => {
  const log = createLogger({ service: "test", level: "silent" });
  const metrics = createMetrics({ service: "test" });
  const ran: string[] = [];
  const workers = createJobWorkers({
    url,
    lockMs: 5_000,
    stopWithinMs: 2_000,
    metrics,
    log,
    onFatal: (error) => expect.unreachable(String(error)),
    jobs: [
      runJob({
        type: retentionJob,
        run: ({ data }) => {
          ran.push(data.clientId ?? "all");
          return Promise.resolve({ dryRun: data.dryRun, clients: [], tables: [] });
        },
      }),
    ],
  });
  const schedules = createSchedules({
    url,
    schedules: [{ name: "retention", everyMs: 3_600_000, data: { clientId: null, dryRun: true } }],
    metrics,
    log,
  });
  stops.push(workers.stop, schedules.stop);
  await workers.start();
  await schedules.start();
  return { metrics, ran };
};
