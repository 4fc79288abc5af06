import { ServiceError } from "@conversation-export/runtime";
import { Queue } from "bullmq";
import type { Redis as Client } from "ioredis";
import { JOB_NAMES, type JobName } from "./job.ts";
import type { StoredData } from "./stored-data.ts";

/** Of every key of the queues. */
export const KEY_PREFIX = "conversation-export";
const DAY_SECONDS = 86_400;

/** The last of the attempts comes about a day and a half after the first. */
export const JOB_OPTIONS = {
  attempts: 18,
  backoff: { type: "exponential", delay: 1_000, jitter: 0.2 },
  removeOnComplete: { age: 30 * DAY_SECONDS, count: 2_000 },
  removeOnFail: { age: 90 * DAY_SECONDS, count: 5_000 },
  // A reason is written by this code; stacks may quote data.
  stackTraceLimit: 0,
} as const;

export type JobQueue = Queue<StoredData, unknown>;

/** The queue of the parts of split jobs. */
export const partQueueOf = (name: JobName): string => `${name}-part`;

/** Queues as they are needed, on one connection that stays its owner's. */
export type JobQueues = {
  /** @throws when the connection is not ready: a queue that is made without it would wait for it, or be broken. */
  of(queue: string): JobQueue;
  close(): Promise<void>;
};

export const createJobQueues = (client: Client): JobQueues => {
  const queues = new Map<string, JobQueue>();
  return {
    of: (name) => {
      if (client.status !== "ready") {
        throw new ServiceError("redis_unavailable", `Redis is away: the connection is ${client.status}`, {
          retryable: true,
        });
      }
      const known = queues.get(name);
      if (known !== undefined) return known;
      const queue: JobQueue = new Queue<StoredData, unknown>(name, {
        connection: client,
        prefix: KEY_PREFIX,
        skipVersionCheck: true,
        defaultJobOptions: JOB_OPTIONS,
      });
      // The connection speaks for itself.
      queue.on("error", () => undefined);
      queue.waitUntilReady().catch(() => queues.delete(name));
      queues.set(name, queue);
      return queue;
    },
    close: async () => {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
};

export const isJobName = (name: string): name is JobName => (JOB_NAMES as readonly string[]).includes(name);

/** Present: somebody wants the job to stop. */
export const cancelKeyOf = (name: JobName, id: string): string => `${KEY_PREFIX}:job-cancel:${name}:${id}`;

/** Progress of each part of a split job, by its number. */
export const partProgressKeyOf = (name: JobName, id: string): string =>
  `${KEY_PREFIX}:job-parts:${name}:${id}`;
