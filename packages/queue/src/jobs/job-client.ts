import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type Logger, type RedisServer, ServiceError } from "@conversation-export/runtime";
import { check } from "../contract/check.ts";
import {
  cancelKeyOf,
  createJobQueues,
  isReservedId,
  partProgressKeyOf,
  queuesOf,
} from "../contract/job-queues.ts";
import { JOB_NAMES, type JobName, type JobType } from "../contract/job.ts";
import { readStoredData } from "../contract/stored-data.ts";
import { askRedis, clientOf, createRedis, redisUnavailable, writeOnce } from "../redis/redis.ts";
import { problemsOf, readServerFacts } from "../redis/server-facts.ts";
import { followJob, type FollowOptions } from "./follow-job.ts";
import { createHeldSchedules, type HeldSchedule } from "./held-schedules.ts";
import { JOB_STATES, type JobState, type JobView } from "./job-view.ts";
import { type QueueBacklog, readBacklog } from "./queue-backlog.ts";
import { createJobReading, type JobCounts, type ScheduleView } from "./read-jobs.ts";

const CONNECT_WITHIN_MS = 5_000;
const CANCEL_SECONDS = 30 * 86_400;

/**
 * Every call waits up to `connectWithinMs` for the connection.
 * @throws ServiceError `redis_unavailable`; `redis_cluster`: the server runs in cluster mode
 */
export type JobClient = {
  /** Begins to connect and does not wait for the server. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Without an id a new job is added. With an id (no colon, no whole number) nothing is added while a job of
   * this id has not ended; one that has ended is replaced, or with `ended: "keep"` kept.
   * @throws ServiceError `bad_data` that names the wrong fields; `bad_job_id`
   */
  add<Data, Result>(
    type: JobType<Data, Result>,
    data: Data,
    options?: { readonly id?: string; readonly ended?: "replace" | "keep" },
  ): Promise<{ readonly id: string; readonly added: boolean }>;
  /** null: unknown, or removed because of its age. */
  get(name: JobName, id: string): Promise<JobView | null>;
  /** Looks for the job in all queues. */
  find(id: string): Promise<JobView | null>;
  /** The newest first, 50 by default. */
  list(filter?: {
    readonly names?: readonly JobName[];
    readonly states?: readonly JobState[];
    readonly limit?: number;
  }): Promise<readonly JobView[]>;
  /** `cancelling`: a running job stops at its next safe point, a waiting one when its turn comes. */
  cancel(name: JobName, id: string): Promise<"cancelling" | "ended" | "unknown">;
  /**
   * Makes a failed or cancelled job wait again, with its saved state; of a job in parts, those without a
   * result. A schedule that it holds goes on.
   */
  retry(name: JobName, id: string): Promise<"retried" | "not-failed" | "unknown">;
  /**
   * Removes a job and its parts; a schedule that it holds goes on. `active`: it or a part of it runs.
   * @throws ServiceError `job_scheduled`
   */
  remove(name: JobName, id: string): Promise<"removed" | "active" | "unknown">;
  /**
   * The job whenever it has changed, the last time when it has ended. Outlives a minute without Redis.
   * @throws ServiceError `job_unknown`
   */
  follow(name: JobName, id: string, options?: FollowOptions): AsyncIterable<JobView>;
  /** How many processes take jobs of this kind now; null: the server does not list its clients. */
  workers(name: JobName): Promise<number | null>;
  /** All schedules that start jobs. */
  schedules(): Promise<readonly ScheduleView[]>;
  heldSchedules(): Promise<readonly HeldSchedule[]>;
  counts(): Promise<JobCounts>;
  /** How much each queue holds, without the data of any job. `failedSince`: ms since the epoch */
  backlog(failedSince: number): Promise<readonly QueueBacklog[]>;
  /**
   * `problems`: a sentence for each setting of the server by which jobs are lost.
   * @throws ServiceError `redis_unavailable` also when the server takes no writes
   */
  checkServer(): Promise<{
    readonly version: string | null;
    readonly maxmemoryPolicy: string | null;
    readonly problems: readonly string[];
  }>;
};

/**
 * Adds, shows and stops jobs. The client has a connection of its own.
 * @param deps.connectWithinMs how long a call waits for the connection, 5 seconds by default; 0: not at all
 */
export const createJobClient = (
  deps: RedisServer & { readonly log: Logger; readonly connectWithinMs?: number },
): JobClient => {
  const { connectWithinMs = CONNECT_WITHIN_MS } = deps;
  const redis = createRedis(deps);
  const client = clientOf(redis);
  const queues = createJobQueues(client);
  const reading = createJobReading({ client, queues });
  const holds = createHeldSchedules(client);

  const connect = async (): Promise<void> => {
    if (client.status === "ready") return;
    if (connectWithinMs === 0) throw new Error(`the connection is not ready: ${client.status}`);
    await once(client, "ready", { signal: AbortSignal.timeout(connectWithinMs) }).catch((error: unknown) => {
      const late = error instanceof Error && error.name === "AbortError";
      throw new Error(late ? `not connected within ${connectWithinMs} ms` : redis.reasonOf(error as Error), {
        cause: error,
      });
    });
  };

  const ask = async <T>(operation: () => Promise<T>): Promise<T> => {
    await askRedis(connect);
    await redis.suits();
    try {
      return await operation();
    } catch (error) {
      throw error instanceof ServiceError ? error : redisUnavailable(error);
    }
  };

  /** Ends the delay of a cancelled job and its parts, so that they stop at once. */
  const hasten = async (name: JobName, id: string): Promise<void> => {
    const own = await queues.of(name).getJob(id);
    const [, partQueue] = queuesOf(name);
    const parts = partQueue === undefined ? [] : await queues.of(partQueue).getJobs(["delayed"]);
    // A job may be removed between the reading of its id and of its fields.
    const jobs = [own, ...parts.filter((part) => readStoredData(part?.data).parent?.id === id)];
    // BullMQ refuses to promote a job that is not delayed.
    await Promise.all(jobs.flatMap((job) => job?.promote().catch(() => undefined) ?? []));
  };

  const removeNow = async (name: JobName, id: string): Promise<boolean> => {
    const removed = await queues
      .of(name)
      .remove(id, { removeChildren: true })
      .catch((error: unknown) => {
        if (!String(error).includes("scheduler")) throw error;
        throw new ServiceError("job_scheduled", "it is the next run of a schedule");
      });
    if (removed !== 1) return false;
    await client.del(cancelKeyOf(name, id), partProgressKeyOf(name, id));
    return true;
  };

  const get = (name: JobName, id: string): Promise<JobView | null> => ask(() => reading.get(name, id));

  return {
    start: () => {
      redis.connect();
      return Promise.resolve();
    },
    stop: async () => {
      // Before the queues, whose closing waits for commands under way.
      await redis.stop();
      await queues.close();
    },
    add: async (type, data, options = {}) => {
      const { name } = type;
      const input = check("bad_data", type.data, data);
      const id = options.id ?? newId(name, new Date());
      if (isReservedId(id)) throw new ServiceError("bad_job_id", "a queue has a key of this name");
      return ask(async () => {
        const queue = queues.of(name);
        const state = await queue.getJobState(id);
        const ended = state === "completed" || state === "failed";
        if (ended && options.ended === "keep") return { id, added: false };
        if (state !== "unknown" && !(ended && (await removeNow(name, id)))) return { id, added: false };
        await client.del(cancelKeyOf(name, id));
        // BullMQ ignores the call when another process has just added the job.
        await queue.add(name, { input }, { jobId: id });
        return { id, added: true };
      });
    },
    get,
    find: async (id) => {
      const found = await Promise.all(JOB_NAMES.map((name) => get(name, id)));
      return found.find((view) => view !== null) ?? null;
    },
    list: ({ names = JOB_NAMES, states = JOB_STATES, limit = 50 } = {}) =>
      ask(() => reading.list(names, states, limit)),
    cancel: (name, id) =>
      ask(async () => {
        const queue = queues.of(name);
        const state = await queue.getJobState(id);
        if (state === "unknown") return "unknown";
        if (state === "completed" || state === "failed") return "ended";
        // The key outlives the job, for parts that are still to come; `retry` removes it.
        await client.set(cancelKeyOf(name, id), "1", "EX", CANCEL_SECONDS);
        await hasten(name, id);
        return "cancelling";
      }),
    retry: (name, id) =>
      ask(async () => {
        const queue = queues.of(name);
        const job = await queue.getJob(id);
        if (job === undefined) return "unknown";
        if ((await queue.getJobState(id)) !== "failed") return "not-failed";
        await client.del(cancelKeyOf(name, id));
        const { waiting, ...stored } = readStoredData(job.data);
        if (waiting === true) await job.updateData(stored);
        await holds.lift(name, id);
        await job.retry("failed", { resetAttemptsMade: true });
        return "retried";
      }),
    remove: (name, id) =>
      ask(async () => {
        const isUnknown = (await queues.of(name).getJobState(id)) === "unknown";
        if (!isUnknown && !(await removeNow(name, id))) return "active";
        // Also of a job that a removal before, which broke off, has taken.
        await holds.lift(name, id);
        return isUnknown ? "unknown" : "removed";
      }),
    follow: (name, id, options) =>
      followJob({ get, isConnected: () => client.status === "ready" }, name, id, options),
    workers: (name) =>
      ask(async () => {
        try {
          const workers = await queues.of(name).getWorkers();
          // BullMQ omits `rawname` when the server lacks CLIENT LIST.
          return workers.every((worker) => "rawname" in worker) ? workers.length : null;
        } catch (error) {
          // The user may not be allowed to list clients.
          if (error instanceof Error && error.name === "ReplyError") return null;
          throw error;
        }
      }),
    schedules: () => ask(reading.schedules),
    heldSchedules: () => ask(holds.list),
    counts: () => ask(reading.counts),
    backlog: (failedSince) => ask(() => readBacklog(client, failedSince)),
    checkServer: () =>
      ask(async () => {
        await writeOnce(client);
        const facts = readServerFacts(await client.info());
        return { ...facts, problems: problemsOf(facts) };
      }),
  };
};

/** Ids sort by time and are short enough to type. */
const newId = (name: JobName, now: Date): string => {
  const instant = now.toISOString().slice(0, 19).replaceAll("-", "").replaceAll(":", "");
  return `${name}-${instant}-${randomBytes(3).toString("hex")}`;
};
