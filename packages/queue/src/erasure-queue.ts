import type { Logger, RedisServer } from "@conversation-export/runtime";
import { Queue } from "bullmq";
import { askRedis, clientOf, createRedis } from "./redis.ts";

const QUEUE_NAME = "erasure";
const KEY_PREFIX = "conversation-export";
const DAY_SECONDS = 86_400;

/** The last of the attempts comes about two days after the first. */
const ATTEMPTS = { attempts: 15, backoff: { type: "exponential", delay: 10_000, jitter: 0.2 } } as const;
const RETENTION = {
  removeOnComplete: { age: 30 * DAY_SECONDS, count: 100_000 },
  removeOnFail: { age: 365 * DAY_SECONDS, count: 100_000 },
} as const;

/** One request for erasure; what is to be erased stands in its row in the warehouse. */
export type ErasureJob = { readonly clientId: string; readonly requestId: string };

/** Where a job stands in the queue. null: the queue does not know it, or not any more. */
export type ErasureStatus = "waiting" | "delayed" | "active" | "completed" | "failed" | null;

export type ErasureQueue = {
  /** Begins to connect and does not wait for the server. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Sees to it that there is a job for a request that is not finished: none is added beside one that waits or runs, one
   * that has failed is tried again, and one that has ended is replaced. @throws ServiceError `redis_unavailable`
   */
  add(job: ErasureJob): Promise<void>;
  /** @throws ServiceError `redis_unavailable` */
  status(requestId: string): Promise<ErasureStatus>;
  /** Jobs by status. @throws ServiceError `redis_unavailable` */
  counts(): Promise<Readonly<Record<string, number>>>;
};

/** The queue has a connection of its own. */
export const createErasureQueue = (deps: RedisServer & { readonly log: Logger }): ErasureQueue => {
  const { log } = deps;
  const redis = createRedis(deps);
  const client = clientOf(redis);
  let queue: Queue<ErasureJob> | undefined;

  /** A queue that is made while the server is away waits for it, or is broken for good; so make it when it is there. */
  const openQueue = (): Queue<ErasureJob> => {
    if (client.status !== "ready") throw new Error(`the connection is not ready: ${client.status}`);
    if (queue !== undefined) return queue;
    const opened = new Queue<ErasureJob>(QUEUE_NAME, {
      connection: client,
      prefix: KEY_PREFIX,
      skipVersionCheck: true,
      defaultJobOptions: { ...ATTEMPTS, ...RETENTION },
    });
    opened.on("error", (error) => log.debug({ error: error.message }, "the erasure queue lost Redis"));
    opened.waitUntilReady().catch(() => {
      if (queue === opened) queue = undefined;
    });
    queue = opened;
    return opened;
  };

  return {
    start: () => {
      redis.connect();
      return Promise.resolve();
    },
    stop: async () => {
      // First, since closing the queue waits for commands under way.
      await redis.stop();
      await queue?.close();
    },
    add: (job) =>
      askRedis(async () => {
        const jobs = openQueue();
        const jobId = jobIdOf(job.requestId);
        const state = await jobs.getJobState(jobId);
        if (state === "failed") await tryAgain(jobs, jobId);
        if (state === "completed") await jobs.remove(jobId);
        // Leaves a job alone that is there, also one that another process has just added.
        await jobs.add("erase", job, { jobId });
      }),
    status: (requestId) =>
      askRedis(async () => {
        const state = await openQueue().getJobState(jobIdOf(requestId));
        return state === "unknown" ? null : (state as Exclude<ErasureStatus, null>);
      }),
    counts: () => askRedis(() => openQueue().getJobCounts()),
  };
};

const tryAgain = async (jobs: Queue<ErasureJob>, jobId: string): Promise<void> => {
  const failed = await jobs.getJob(jobId);
  try {
    await failed?.retry("failed", { resetAttemptsMade: true });
  } catch (error) {
    // Another process may have been first.
    if ((await jobs.getJobState(jobId)) === "failed") throw error;
  }
};

/** Job ids must not be whole numbers nor hold a colon. */
const jobIdOf = (requestId: string): string => `request-${encodeURIComponent(requestId)}`;
