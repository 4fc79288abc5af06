import {
  type Logger,
  type Metrics,
  type RedisServer,
  retry,
  ServiceError,
  within,
} from "@conversation-export/runtime";
import type { Worker } from "bullmq";
import { createActiveJobs } from "./active-jobs.ts";
import { createFencedWrite } from "./fenced-write.ts";
import { createAttemptMetrics } from "./job-metrics.ts";
import { createJobQueues, partProgressKeyOf, partQueueOf, queuesOf } from "../contract/job-queues.ts";
import { createJobWorker } from "./job-worker.ts";
import { clientOf, createRedis } from "../redis/redis.ts";
import { createHeldSchedules } from "../jobs/held-schedules.ts";
import type { RunnableJob } from "./run-job.ts";

const STOP_LOOK_MS = 100;
const PART_PROGRESS_SECONDS = 40 * 86_400;

export type JobWorkers = {
  start(): Promise<void>;
  stop(): Promise<void>;
  ready(): true | string;
};

/** `onFatal`: a worker ended, which is a bug, or Redis is in cluster mode. */
export const createJobWorkers = (
  deps: RedisServer & {
    readonly jobs: readonly RunnableJob[];
    readonly lockMs: number;
    readonly stopWithinMs: number;
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly onFatal?: (error: unknown) => void;
  },
): JobWorkers => {
  const { jobs, lockMs, stopWithinMs, log } = deps;
  const names = jobs.map(({ name }) => name);
  if (new Set(names).size < names.length) throw new TypeError("two handlers for one kind of job");
  // Another connection already logs when Redis is away.
  const quiet = log.child({}, { level: log.isLevelEnabled("debug") ? "debug" : "error" });
  const onRefused = (error: unknown): void => deps.onFatal?.(error);
  const patientRedis = createRedis({ ...deps, log: quiet, within: "ever", onRefused });
  const impatientRedis = createRedis({ ...deps, log: quiet, onRefused });
  const [patient, impatient] = [clientOf(patientRedis), clientOf(impatientRedis)];
  // BullMQ adds a listener for each worker.
  patient.setMaxListeners(0);
  const queues = createJobQueues(patient);
  const active = createActiveJobs({ client: impatient, lockMs, log });
  const holds = createHeldSchedules(impatient);
  const metrics = createAttemptMetrics(deps.metrics);
  const workers: Worker[] = [];
  const abort = new AbortController();
  let state: true | string = "the workers have not started yet";

  deps.metrics.gauge("conversation_export_job_running", "jobs that this process runs", ["queue"], (gauge) => {
    for (const queue of names.flatMap(queuesOf)) gauge.set({ queue }, active.count(queue));
  });

  const notePart = async (
    name: RunnableJob["name"],
    parentId: string,
    index: number,
    progress: unknown,
  ): Promise<void> => {
    const key = partProgressKeyOf(name, parentId);
    const noted = impatient.multi().hset(key, String(index), JSON.stringify(progress));
    await noted.expire(key, PART_PROGRESS_SECONDS).exec();
  };

  const open = async ({ name, options, work }: RunnableJob): Promise<void> => {
    const bounded = queues.of(work.kind === "split" ? partQueueOf(name) : name);
    if (options.globalConcurrency === undefined) await bounded.removeGlobalConcurrency();
    else await bounded.setGlobalConcurrency(options.globalConcurrency);
    const common = {
      patient,
      queues,
      active,
      write: createFencedWrite(impatient),
      lockMs,
      metrics,
      log,
      name,
      work,
      notePart,
      holds,
      findings: options.findings ?? [],
    };
    workers.push(createJobWorker({ ...common, parts: false, concurrency: options.concurrency ?? 1 }));
    if (work.kind === "split") workers.push(createJobWorker({ ...common, parts: true, concurrency: 1 }));
  };

  const fail = (error: unknown): void => {
    state = "a worker has ended";
    log.error({ err: error }, "a worker has ended");
    deps.onFatal?.(error);
  };

  /** false: time is up, or Redis is away and no job runs. */
  const isClosed = async (closing: Promise<unknown>): Promise<boolean> => {
    let closed = false;
    const noted = closing.then(() => {
      closed = true;
    });
    const end = performance.now() + stopWithinMs;
    while (!closed && performance.now() < end && (patient.status === "ready" || active.total() > 0)) {
      await within(noted, STOP_LOOK_MS, () => undefined);
    }
    return closed;
  };

  return {
    start: async () => {
      await Promise.all([patientRedis.start(), impatientRedis.start()]);
      for (const job of jobs) await retry(() => open(job), { signal: abort.signal });
      await active.start();
      for (const worker of workers) worker.run().catch(fail);
      state = true;
    },
    stop: async () => {
      state = "stopping";
      abort.abort();
      const closing = Promise.all(workers.map((worker) => worker.close()));
      active.stopAll();
      const closed = await isClosed(closing);
      const running = active.total();
      if (!closed) log.warn({ running }, "shutdown timed out, running jobs will be retried as stalled");
      await active.close();
      if (closed) await queues.close();
      await patientRedis.stop();
      await impatientRedis.stop();
      if (running > 0) throw new ServiceError("stop_late", `${running} jobs did not stop in time`);
    },
    ready: () => state,
  };
};
