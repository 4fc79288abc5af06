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
import { askRedis, clientOf, createRedis, type ServerCheck } from "../redis/redis.ts";
import { followJob, type FollowOptions } from "./follow-job.ts";
import { createHeldSchedules, type HeldSchedule } from "./held-schedules.ts";
import { JOB_STATES, type JobState, type JobView } from "./job-view.ts";
import { type QueueBacklog, readBacklog } from "./queue-backlog.ts";
import { createJobReading, type JobCounts, type ScheduleView } from "./read-jobs.ts";

const CONNECT_WITHIN_MS = 5_000;
const CANCEL_SECONDS = 30 * 86_400;

/** Calls throw `redis_unavailable`, or `redis_cluster` in cluster mode. */
export type JobClient = {
  /** Does not wait for the server. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Adds nothing while a job of this id (no colon, no number) has not ended; an ended one is replaced, or kept with
   * `ended: "keep"`. Throws `bad_data`, `bad_job_id`.
   */
  add<Data, Result>(
    type: JobType<Data, Result>,
    data: Data,
    options?: { readonly id?: string; readonly ended?: "replace" | "keep" },
  ): Promise<{ readonly id: string; readonly added: boolean }>;
  /** null: unknown, or removed for its age. */
  get(name: JobName, id: string): Promise<JobView | null>;
  find(id: string): Promise<JobView | null>;
  list(filter?: {
    readonly names?: readonly JobName[];
    readonly states?: readonly JobState[];
    readonly limit?: number;
  }): Promise<readonly JobView[]>;
  /** Running jobs stop at their next safe point, waiting ones at their turn. */
  cancel(name: JobName, id: string): Promise<"cancelling" | "ended" | "unknown">;
  /** From its saved state; a schedule that it holds goes on. */
  retry(name: JobName, id: string): Promise<"retried" | "not-failed" | "unknown">;
  /** With its parts; a schedule that it holds goes on; throws `job_scheduled`. */
  remove(name: JobName, id: string): Promise<"removed" | "active" | "unknown">;
  follow(name: JobName, id: string, options?: FollowOptions): AsyncIterable<JobView>;
  /** Processes; null: the server does not list its clients. */
  workers(name: JobName): Promise<number | null>;
  schedules(): Promise<readonly ScheduleView[]>;
  heldSchedules(): Promise<readonly HeldSchedule[]>;
  counts(): Promise<JobCounts>;
  /** `failedSince`: ms since the epoch. */
  backlog(failedSince: number): Promise<readonly QueueBacklog[]>;
  /** Throws `redis_unavailable` if writes fail. */
  checkServer(): Promise<ServerCheck>;
};

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
    return askRedis(operation);
  };

  /** Ends the delay, so that they stop at once. */
  const hasten = async (name: JobName, id: string): Promise<void> => {
    const own = await queues.of(name).getJob(id);
    const [, partQueue] = queuesOf(name);
    const parts = partQueue === undefined ? [] : await queues.of(partQueue).getJobs(["delayed"]);
    // A job may be removed between the reads of its id and of its fields.
    const jobs = [own, ...parts.filter((part) => readStoredData(part?.data).parent?.id === id)];
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
      // Before the queues, whose closing waits for running commands.
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
        // An interrupted removal may have taken the job already.
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
          // The user may lack the right to list clients.
          if (error instanceof Error && error.name === "ReplyError") return null;
          throw error;
        }
      }),
    schedules: () => ask(reading.schedules),
    heldSchedules: () => ask(holds.list),
    counts: () => ask(reading.counts),
    backlog: (failedSince) => ask(() => readBacklog({ client, queues }, failedSince)),
    checkServer: () =>
      ask(async () => {
        await redis.tryWrite();
        return redis.checkServer();
      }),
  };
};

const newId = (name: JobName, now: Date): string => {
  const instant = now.toISOString().slice(0, 19).replaceAll("-", "").replaceAll(":", "");
  return `${name}-${instant}-${randomBytes(3).toString("hex")}`;
};
