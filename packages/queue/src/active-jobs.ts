import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@conversation-export/runtime";
import type { Redis as Client } from "ioredis";
import { STOP_REASONS, type StopReason } from "./job-failure.ts";

const LOOK_EVERY_MS = 1_000;

/** A job that this process runs. */
export type ActiveJob = {
  readonly queue: string;
  readonly id: string;
  /** A key in Redis that cancels it. */
  readonly cancelKey: string;
  readonly signal: AbortSignal;
  stop(reason: StopReason): void;
};

export type ActiveJobs = {
  start(): void;
  /** Ends the watching; jobs are told to stop by `stopAll`. */
  close(): Promise<void>;
  begin(job: { queue: string; id: string; cancelKey: string }): Promise<ActiveJob>;
  end(job: ActiveJob): void;
  /** Also stops those that begin from now on. */
  stopAll(): void;
  renewed(queue: string, ids: readonly string[]): void;
  lost(queue: string, ids: readonly string[]): void;
  count(queue: string): number;
  total(): number;
};

/**
 * Tells running jobs to stop: when they are cancelled, when their lock is lost or was not renewed for too long, and when
 * the process stops. @param deps.client answers now or fails
 */
export const createActiveJobs = (deps: {
  readonly client: Client;
  readonly lockMs: number;
  readonly log: Logger;
}): ActiveJobs => {
  const { client, lockMs, log } = deps;
  const jobs = new Map<ActiveJob, { renewedAt: number }>();
  const abort = new AbortController();
  let stopping = false;
  let watching = Promise.resolve();

  const find = (queue: string, ids: readonly string[]) =>
    [...jobs].filter(([job]) => job.queue === queue && ids.includes(job.id));

  const cancelCancelled = async (wanted: readonly ActiveJob[]): Promise<void> => {
    if (wanted.length === 0) return;
    const values = await client.mget(wanted.map(({ cancelKey }) => cancelKey));
    wanted.forEach((job, index) => {
      if (values[index] !== null) job.stop("cancelled");
    });
  };

  const look = async (): Promise<void> => {
    const now = performance.now();
    for (const [job, { renewedAt }] of jobs) if (now - renewedAt > lockMs * 0.9) job.stop("lock_lost");
    try {
      await cancelCancelled([...jobs.keys()]);
    } catch (error) {
      log.debug({ error: String(error) }, "cannot see whether jobs are cancelled");
    }
  };

  const watch = async (): Promise<void> => {
    while (!abort.signal.aborted) {
      await look();
      await sleep(LOOK_EVERY_MS, undefined, { signal: abort.signal }).catch(() => undefined);
    }
  };

  return {
    start: () => {
      watching = watch();
    },
    close: async () => {
      abort.abort();
      await watching;
    },
    begin: async (given) => {
      const controller = new AbortController();
      const job: ActiveJob = {
        ...given,
        signal: controller.signal,
        stop: (reason) => {
          if (!controller.signal.aborted) controller.abort(STOP_REASONS[reason]());
        },
      };
      jobs.set(job, { renewedAt: performance.now() });
      if (stopping) job.stop("stopping");
      // Without an answer the job begins, and the next look tells.
      await cancelCancelled([job]).catch(() => undefined);
      return job;
    },
    end: (job) => void jobs.delete(job),
    stopAll: () => {
      stopping = true;
      for (const job of jobs.keys()) job.stop("stopping");
    },
    renewed: (queue, ids) => {
      for (const [, times] of find(queue, ids)) times.renewedAt = performance.now();
    },
    lost: (queue, ids) => {
      for (const [job] of find(queue, ids)) job.stop("lock_lost");
    },
    total: () => jobs.size,
    count: (queue) => [...jobs.keys()].filter((job) => job.queue === queue).length,
  };
};
