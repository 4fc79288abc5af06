import { ServiceError } from "@conversation-export/runtime";
import { Queue, QueueKeys } from "bullmq";
import type { Redis as Client } from "ioredis";
import { type JobName, SPLIT_JOB_NAMES } from "./job.ts";
import type { StoredData } from "./stored-data.ts";

export const KEY_PREFIX = "conversation-export";
const DAY_SECONDS = 86_400;

/** The last attempt comes about a day and a half after the first. */
const JOB_OPTIONS = {
  attempts: 18,
  backoff: { type: "exponential", delay: 1_000, jitter: 0.2 },
  removeOnComplete: { age: 30 * DAY_SECONDS, count: 2_000 },
  removeOnFail: { age: 90 * DAY_SECONDS, count: 5_000 },
  // Stacks may quote data.
  stackTraceLimit: 0,
} as const;

/** Owed to persons: two days of retries, and room for scheduled runs. */
const ERASURE_OPTIONS = {
  ...JOB_OPTIONS,
  attempts: 15,
  backoff: { ...JOB_OPTIONS.backoff, delay: 10_000 },
  removeOnComplete: { age: 30 * DAY_SECONDS, count: 100_000 },
  removeOnFail: { age: 365 * DAY_SECONDS, count: 100_000 },
} as const;

export const jobOptionsOf = (queue: string) => (queue === "erasure" ? ERASURE_OPTIONS : JOB_OPTIONS);

export type JobQueue = Queue<StoredData, unknown>;

/** A queue's own keys, where a job of this id would be stored. */
const OF_QUEUES: ReadonlySet<string> = new Set(Object.keys(new QueueKeys(KEY_PREFIX).getKeys("any")));
export const isReservedId = (id: string): boolean => OF_QUEUES.has(id);

export const partQueueOf = (name: JobName): string => `${name}-part`;
export const queuesOf = (name: JobName): string[] =>
  SPLIT_JOB_NAMES.includes(name) ? [name, partQueueOf(name)] : [name];

/** Does not close the connection. */
export type JobQueues = {
  /** Throws `redis_unavailable` without a connection: a queue made then may hang or stay broken. */
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
        defaultJobOptions: jobOptionsOf(name),
      });
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

export const cancelKeyOf = (name: JobName, id: string): string => `${KEY_PREFIX}:job-cancel:${name}:${id}`;

/** A hash: progress by the number of the part. */
export const partProgressKeyOf = (name: JobName, id: string): string =>
  `${KEY_PREFIX}:job-parts:${name}:${id}`;
