import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { isRetryable, type Logger, type RedisServer, ServiceError } from "@conversation-export/runtime";
import type { Job } from "bullmq";
import { cancelKeyOf, createJobQueues, KEY_PREFIX, partProgressKeyOf, partQueueOf } from "./job-queues.ts";
import { hasEnded, JOB_STATES, type JobState, type JobView, viewJob } from "./job-view.ts";
import { JOB_NAMES, type JobName, type JobProgress, type JobType } from "./job.ts";
import { askRedis, clientOf, createRedis, redisUnavailable } from "./redis.ts";
import { check } from "./run-job.ts";
import { problemsOf, readServerFacts } from "./server-facts.ts";
import { readStoredData, type StoredData } from "./stored-data.ts";

const CONNECT_WITHIN_MS = 5_000;
const CANCEL_SECONDS = 30 * 86_400;
const FOLLOW_EVERY_MS = 500;
const FOLLOW_WITHOUT_REDIS_MS = 60_000;
/** The score of a delayed job is its instant in ms, times this. */
const DELAY_SCALE = 0x1000;

type StoredJob = Job<StoredData, unknown>;
type QueueState =
  | "waiting"
  | "prioritized"
  | "delayed"
  | "active"
  | "waiting-children"
  | "completed"
  | "failed";

const QUEUE_STATES: Readonly<Record<JobState, readonly QueueState[]>> = {
  waiting: ["waiting", "prioritized"],
  delayed: ["delayed"],
  active: ["active"],
  parts: ["waiting-children"],
  completed: ["completed"],
  failed: ["failed"],
  cancelled: ["failed"],
};

export type JobCounts = Readonly<Record<JobName, Readonly<Record<Exclude<JobState, "cancelled">, number>>>>;
export type ScheduleView = {
  readonly name: JobName;
  readonly everyMs: number;
  readonly nextRunAt: Date | null;
};

export type FollowOptions = {
  readonly everyMs?: number;
  readonly signal?: AbortSignal;
  /** Told when Redis is lost, with the instant until which it is waited for; null: it is back. */
  readonly onRedis?: (awayUntil: Date | null) => void;
};

/** Every call waits up to 5 seconds for the connection and throws ServiceError `redis_unavailable`. */
export type JobClient = {
  /** Begins to connect and does not wait for the server. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Without an id it is a new job. With one (without a colon, and not a whole number) nothing is added beside a job of
   * this id that has not ended; one that has ended is replaced, or kept and nothing is added.
   * @throws ServiceError `bad_data` that names the wrong fields
   */
  add<Data, Result>(
    type: JobType<Data, Result>,
    data: Data,
    options?: { readonly id?: string; readonly ended?: "replace" | "keep" },
  ): Promise<{ readonly id: string; readonly added: boolean }>;
  /** null: unknown, or removed by age. */
  get(name: JobName, id: string): Promise<JobView | null>;
  /** The same in all queues. */
  find(id: string): Promise<JobView | null>;
  /** The newest first, 50 by default. */
  list(filter?: {
    readonly names?: readonly JobName[];
    readonly states?: readonly JobState[];
    readonly limit?: number;
  }): Promise<readonly JobView[]>;
  /** `cancelling`: it stops at its next safe point, one that waits when its turn comes. */
  cancel(name: JobName, id: string): Promise<"cancelling" | "ended" | "unknown">;
  /** A failed or cancelled job waits again, with what it has saved; of one in parts those without a result run again. */
  retry(name: JobName, id: string): Promise<"retried" | "not-failed" | "unknown">;
  /** Removes a job and its parts. `active`: it, or a part of it, runs. @throws ServiceError `job_scheduled` */
  remove(name: JobName, id: string): Promise<"removed" | "active" | "unknown">;
  /**
   * The job whenever it has changed, the last time when it has ended. Outlives a minute without Redis.
   * @throws ServiceError `job_unknown`
   */
  follow(name: JobName, id: string, options?: FollowOptions): AsyncIterable<JobView>;
  /** How many processes take jobs of this kind now; null: the server does not list its clients. */
  workers(name: JobName): Promise<number | null>;
  /** What runs by the clock. */
  schedules(): Promise<readonly ScheduleView[]>;
  counts(): Promise<JobCounts>;
  /** `problems` has a sentence for each setting of the server that loses jobs. */
  checkServer(): Promise<{
    readonly version: string | null;
    readonly maxmemoryPolicy: string | null;
    readonly problems: readonly string[];
  }>;
};

/** Adds, shows and stops jobs. The client has a connection of its own. */
export const createJobClient = (deps: RedisServer & { readonly log: Logger }): JobClient => {
  const redis = createRedis(deps);
  const client = clientOf(redis);
  const queues = createJobQueues(client);

  const connect = async (): Promise<void> => {
    if (client.status === "ready") return;
    await once(client, "ready", { signal: AbortSignal.timeout(CONNECT_WITHIN_MS) }).catch(
      (error: unknown) => {
        const late = error instanceof Error && error.name === "AbortError";
        throw late ? new Error(`not connected within ${CONNECT_WITHIN_MS} ms`) : error;
      },
    );
  };

  const ask = async <T>(operation: () => Promise<T>): Promise<T> => {
    await askRedis(connect);
    try {
      return await operation();
    } catch (error) {
      throw error instanceof ServiceError ? error : redisUnavailable(error);
    }
  };

  const look = async (job: StoredJob, state: string): Promise<JobView> => {
    const id = job.id ?? "";
    const name = job.queueName as JobName;
    const split = readStoredData(job.data).plan !== undefined;
    const [asked, counts, notes, score] = await Promise.all([
      client.exists(cancelKeyOf(name, id)),
      split ? job.getDependenciesCount({ processed: true, unprocessed: true, ignored: true }) : undefined,
      split ? client.hvals(partProgressKeyOf(name, id)) : [],
      state === "delayed" ? client.zscore(`${KEY_PREFIX}:${name}:delayed`, id) : null,
    ]);
    return viewJob(job, state, {
      cancelAsked: asked === 1,
      dependencies: {
        processed: counts?.processed ?? 0,
        unprocessed: counts?.unprocessed ?? 0,
        ignored: counts?.ignored ?? 0,
      },
      partProgress: notes.map((note) => JSON.parse(note) as JobProgress),
      nextAttemptAt: score === null ? null : new Date(Math.floor(Number(score) / DELAY_SCALE)),
    });
  };

  const get = (name: JobName, id: string): Promise<JobView | null> =>
    ask(async () => {
      const queue = queues.of(name);
      // First the state, so that what has ended is seen with its result.
      const state = await queue.getJobState(id);
      const job = state === "unknown" ? undefined : await queue.getJob(id);
      return job === undefined ? null : look(job, state);
    });

  /** What waits for its next attempt need not wait any longer to be stopped. */
  const hasten = async (name: JobName, id: string): Promise<void> => {
    const own = await queues.of(name).getJob(id);
    const parts = await queues.of(partQueueOf(name)).getJobs(["delayed"]);
    // A job may be gone between its id and its fields.
    const jobs = [own, ...parts.filter((part) => readStoredData(part?.data).parent?.id === id)];
    // One that is not delayed, or not any more, refuses.
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

  const listOf = async (name: JobName, state: JobState, limit: number): Promise<JobView[]> => {
    const found = await Promise.all(
      QUEUE_STATES[state].map(async (queueState) => {
        const jobs = await queues.of(name).getJobs([queueState], 0, limit - 1, false);
        // A job may be gone between its id and its fields.
        return Promise.all(jobs.filter(Boolean).map((job) => look(job, queueState)));
      }),
    );
    return found.flat().filter((view) => view.state === state);
  };

  async function* follow(name: JobName, id: string, options: FollowOptions = {}): AsyncGenerator<JobView> {
    const { everyMs = FOLLOW_EVERY_MS, signal, onRedis = () => undefined } = options;
    let told = "";
    let away = false;
    let lastSeen = performance.now();
    const lose = (): void => {
      if (!away) onRedis(new Date(Date.now() + FOLLOW_WITHOUT_REDIS_MS - (performance.now() - lastSeen)));
      away = true;
    };
    while (signal?.aborted !== true) {
      try {
        // Asking would wait for the connection first.
        if (told !== "" && client.status !== "ready") lose();
        const view = await get(name, id);
        if (away) onRedis(null);
        away = false;
        if (view === null) throw new ServiceError("job_unknown", `there is no job ${id} in ${name}`);
        lastSeen = performance.now();
        const now = JSON.stringify(view);
        if (now !== told) yield view;
        told = now;
        if (hasEnded(view)) return;
      } catch (error) {
        if (!isRetryable(error) || performance.now() - lastSeen > FOLLOW_WITHOUT_REDIS_MS) throw error;
        lose();
      }
      await sleep(everyMs, undefined, signal && { signal }).catch(() => undefined);
    }
  }

  return {
    start: () => {
      redis.connect();
      return Promise.resolve();
    },
    stop: async () => {
      // First, since closing the queues waits for commands under way.
      await redis.stop();
      await queues.close();
    },
    add: async (type, data, options = {}) => {
      const { name } = type;
      const input = check("bad_data", type.data, data);
      const id = options.id ?? newId(name, new Date());
      return ask(async () => {
        const queue = queues.of(name);
        const state = await queue.getJobState(id);
        const ended = state === "completed" || state === "failed";
        if (ended && options.ended === "keep") return { id, added: false };
        if (state !== "unknown" && !(ended && (await removeNow(name, id)))) return { id, added: false };
        await client.del(cancelKeyOf(name, id));
        // Leaves a job alone that another process has just added.
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
      ask(async () => {
        const views: JobView[] = [];
        for (const name of names) {
          views.push(...(await Promise.all(states.map((state) => listOf(name, state, limit)))).flat());
        }
        return views.sort((one, other) => other.addedAt.getTime() - one.addedAt.getTime()).slice(0, limit);
      }),
    cancel: (name, id) =>
      ask(async () => {
        const queue = queues.of(name);
        const state = await queue.getJobState(id);
        if (state === "unknown") return "unknown";
        if (state === "completed" || state === "failed") return "ended";
        // It stays when the job has ended, for parts that are still to come; whoever tries it again removes it.
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
        await job.retry("failed", { resetAttemptsMade: true });
        return "retried";
      }),
    remove: (name, id) =>
      ask(async () => {
        if ((await queues.of(name).getJobState(id)) === "unknown") return "unknown";
        return (await removeNow(name, id)) ? "removed" : "active";
      }),
    follow,
    workers: (name) =>
      ask(async () => {
        try {
          const workers = await queues.of(name).getWorkers();
          // One without it stands for a server that knows no such command.
          return workers.every((worker) => "rawname" in worker) ? workers.length : null;
        } catch (error) {
          // A user may be kept from it.
          if (error instanceof Error && error.name === "ReplyError") return null;
          throw error;
        }
      }),
    schedules: () =>
      ask(async () => {
        const all = await Promise.all(
          JOB_NAMES.map(async (name) =>
            (await queues.of(name).getJobSchedulers()).map(({ every, next }) => ({
              name,
              everyMs: every ?? 0,
              nextRunAt: next === undefined ? null : new Date(next),
            })),
          ),
        );
        return all.flat();
      }),
    counts: () =>
      ask(async () => {
        const counts = await Promise.all(JOB_NAMES.map((name) => queues.of(name).getJobCounts()));
        return Object.fromEntries(
          JOB_NAMES.map((name, index) => [name, countsOf(counts[index] ?? {})]),
        ) as JobCounts;
      }),
    checkServer: () =>
      ask(async () => {
        const facts = readServerFacts(await client.info());
        return { ...facts, problems: problemsOf(facts) };
      }),
  };
};

const countsOf = (counts: Readonly<Record<string, number>>): JobCounts[JobName] => {
  const of = (state: Exclude<JobState, "cancelled">): number =>
    QUEUE_STATES[state].reduce((sum, queueState) => sum + (counts[queueState] ?? 0), 0);
  return {
    waiting: of("waiting"),
    delayed: of("delayed"),
    active: of("active"),
    parts: of("parts"),
    completed: of("completed"),
    failed: of("failed"),
  };
};

/** Sorts by time and can be typed. */
const newId = (name: JobName, now: Date): string => {
  const instant = now.toISOString().slice(0, 19).replaceAll("-", "").replaceAll(":", "");
  return `${name}-${instant}-${randomBytes(3).toString("hex")}`;
};
