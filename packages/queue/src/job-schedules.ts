import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger, Metrics, RedisServer } from "@conversation-export/runtime";
import { createJobQueues, JOB_OPTIONS, type JobQueue, KEY_PREFIX } from "./job-queues.ts";
import { JOB_NAMES, type JobName, type JobType } from "./job.ts";
import { clientOf, createRedis } from "./redis.ts";
import { check } from "./run-job.ts";
import { createScript } from "./script.ts";

const LOCK_KEY = `${KEY_PREFIX}:schedules-lock`;
const LOCK_MS = 15_000;
const CHECK_EVERY_MS = 30_000;

/** ARGV: token, length of the lock in ms. */
const TAKE = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`;
/** ARGV: token. */
const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/** A job that runs by the clock; its id is its name. */
export type Schedule = {
  readonly name: JobName;
  readonly data: unknown;
  /** null: it does not run. */
  readonly everyMs: number | null;
};

/** One line of the table of schedules. @throws ServiceError `bad_data` */
export const schedule = <Data, Result>(
  type: JobType<Data, Result>,
  data: Data,
  everyMs: number | null,
): Schedule => ({ name: type.name, data: check("bad_data", type.data, data), everyMs });

export type Schedules = {
  /** Waits for Redis, then brings the schedules there in line with the table. */
  start(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Keeps the schedules in Redis as the table says: at the start new, changed and stale ones are put right, by one process
 * at a time; from then on, every half minute, those that are missing or have lost their next run.
 */
export const createSchedules = (
  deps: RedisServer & {
    readonly schedules: readonly Schedule[];
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly checkEveryMs?: number;
  },
): Schedules => {
  const { schedules, metrics, log, checkEveryMs = CHECK_EVERY_MS } = deps;
  const redis = createRedis({ ...deps, log: log.child({}, { level: "error" }) });
  const client = clientOf(redis);
  const queues = createJobQueues(client);
  const take = createScript(client, TAKE);
  const release = createScript(client, RELEASE);
  const abort = new AbortController();
  const suspects = new Set<JobName>();
  const nextRuns = new Map<JobName, number>();
  let checking = Promise.resolve();

  metrics.gauge("job_next_run_timestamp_seconds", "when a schedule runs next", ["queue"], (gauge) => {
    gauge.reset();
    for (const [queue, next] of nextRuns) gauge.set({ queue }, next / 1000);
  });
  const repaired = metrics.counter("job_schedule_repairs_total", "schedules that had lost their next run", [
    "queue",
  ]);

  const put = async (queue: JobQueue, { name, data }: Schedule, every: number): Promise<void> => {
    await queue.upsertJobScheduler(name, { every }, { name, data: { input: data }, opts: JOB_OPTIONS });
  };

  /** Between the run that begins and the next one that is added there may be none: so it takes two looks. */
  const isBroken = async (queue: JobQueue, name: JobName, next: number | undefined): Promise<boolean> => {
    const state = next === undefined ? "unknown" : await queue.getJobState(`repeat:${name}:${next}`);
    if (state !== "unknown" && state !== "completed" && state !== "failed") {
      suspects.delete(name);
      return false;
    }
    const again = suspects.has(name);
    suspects.add(name);
    return again;
  };

  const align = async (name: JobName, atStart: boolean): Promise<void> => {
    const queue = queues.of(name);
    const wanted = schedules.find((one) => one.name === name && one.everyMs !== null);
    const known = await queue.getJobSchedulers();
    for (const { key } of known) {
      if (!atStart || (wanted !== undefined && key === name)) continue;
      await queue.removeJobScheduler(key);
      log.info({ queue: name, schedule: key }, "a schedule is removed");
    }
    if (wanted === undefined || wanted.everyMs === null) return void nextRuns.delete(name);
    const found = known.find(({ key }) => key === name);
    const changed =
      found !== undefined &&
      (Number(found.every) !== wanted.everyMs ||
        JSON.stringify(found.template?.data?.input) !== JSON.stringify(wanted.data));
    if (found === undefined || (atStart && changed)) {
      await put(queue, wanted, wanted.everyMs);
      log.info({ queue: name, everyMs: wanted.everyMs }, "a schedule is set");
    } else if (await isBroken(queue, name, found.next)) {
      log.warn({ queue: name }, "a schedule had lost its next run");
      repaired.inc({ queue: name });
      await queue.removeJobScheduler(name);
      await put(queue, wanted, wanted.everyMs);
      suspects.delete(name);
    }
    const now = await queue.getJobScheduler(name);
    if (now?.next !== undefined) nextRuns.set(name, now.next);
  };

  /** false: another process is at it. */
  const alignAll = async (atStart: boolean): Promise<boolean> => {
    const token = randomUUID();
    if ((await take(LOCK_KEY, [token, LOCK_MS])) !== 1) return false;
    try {
      for (const name of JOB_NAMES) await align(name, atStart);
    } finally {
      await release(LOCK_KEY, [token]).catch(() => undefined);
    }
    return true;
  };

  const watch = async (): Promise<void> => {
    let aligned = false;
    while (!abort.signal.aborted) {
      let done = false;
      try {
        done = await alignAll(!aligned);
        aligned ||= done;
      } catch (error) {
        log.warn({ error: String(error) }, "the schedules cannot be checked");
      }
      const pause = done ? checkEveryMs : 1_000 * (1 + Math.random());
      await sleep(pause, undefined, { signal: abort.signal }).catch(() => undefined);
    }
  };

  return {
    start: async () => {
      await redis.start();
      checking = watch();
    },
    stop: async () => {
      abort.abort();
      // With the connection, so that a check under way gives its lock back.
      await checking;
      await redis.stop();
      await queues.close();
    },
  };
};
