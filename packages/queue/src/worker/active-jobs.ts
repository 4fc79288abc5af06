import { createLoop, type Logger } from "@conversation-export/runtime";
import type { Redis as Client } from "ioredis";
import { STOP_REASONS, type StopReason } from "./job-failure.ts";

const LOOK_EVERY_MS = 1_000;

export type ActiveJob = {
  readonly queue: string;
  readonly id: string;
  /** Its existence in Redis cancels the job. */
  readonly cancelKey: string;
  readonly signal: AbortSignal;
  stop(reason: StopReason): void;
};

export type ActiveJobs = {
  start(): Promise<void>;
  /** Ends the polling only. */
  close(): Promise<void>;
  begin(job: { queue: string; id: string; cancelKey: string }): Promise<ActiveJob>;
  end(job: ActiveJob): void;
  stopAll(): void;
  renewed(queue: string, ids: readonly string[]): void;
  lost(queue: string, ids: readonly string[]): void;
  count(queue: string): number;
  total(): number;
};

/** `client` must fail at once without Redis. */
export const createActiveJobs = (deps: {
  readonly client: Client;
  readonly lockMs: number;
  readonly log: Logger;
}): ActiveJobs => {
  const { client, lockMs, log } = deps;
  const jobs = new Map<ActiveJob, { renewedAt: number }>();
  let stopping = false;

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

  const watch = createLoop({ turn: look, pauseMs: LOOK_EVERY_MS });

  return {
    start: watch.start,
    close: watch.stop,
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
      // Without an answer the job begins; the next look stops it.
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
