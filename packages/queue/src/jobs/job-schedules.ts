import { createLoop, type Logger, type Metrics, type RedisServer } from "@conversation-export/runtime";
import { createJobQueues, type JobQueue, jobOptionsOf, KEY_PREFIX } from "../contract/job-queues.ts";
import { JOB_NAMES, type JobName, type JobType } from "../contract/job.ts";
import { clientOf, createRedis } from "../redis/redis.ts";
import { check } from "../contract/check.ts";
import { createRedisLocks } from "../leases/redis-lock.ts";
import { createHeldSchedules } from "./held-schedules.ts";

const LOCK_KEY = `${KEY_PREFIX}:schedules-lock`;
const LOCK_MS = 15_000;
const CHECK_EVERY_MS = 30_000;

export type Schedule = {
  readonly name: JobName;
  readonly data: unknown;
  /** null: never. */
  readonly everyMs: number | null;
};

/** Throws `bad_data`. */
export const schedule = <Data, Result>(
  type: JobType<Data, Result>,
  data: Data,
  everyMs: number | null,
): Schedule => ({ name: type.name, data: check("bad_data", type.data, data), everyMs });

/** Aligns Redis at the start, later repairs missing runs; one process at a time. */
export const createSchedules = (
  deps: RedisServer & {
    readonly schedules: readonly Schedule[];
    readonly metrics: Metrics;
    readonly log: Logger;
    readonly checkEveryMs?: number;
  },
) => {
  const { schedules, metrics, log, checkEveryMs = CHECK_EVERY_MS } = deps;
  const redis = createRedis({ ...deps, log: log.child({}, { level: "error" }) });
  const client = clientOf(redis);
  const queues = createJobQueues(client);
  const lockOf = createRedisLocks(client, { atOnce: true });
  const holds = createHeldSchedules(client);
  const suspects = new Set<JobName>();
  const nextRuns = new Map<JobName, number>();
  const held = new Set<JobName>();

  metrics.gauge(
    "conversation_export_job_next_run_timestamp_seconds",
    "when a schedule runs next",
    ["queue"],
    (gauge) => {
      gauge.reset();
      for (const [queue, next] of nextRuns) gauge.set({ queue }, next / 1000);
    },
  );
  metrics.gauge(
    "conversation_export_job_schedule_held",
    "1: the schedule starts no job, since the last one failed for good",
    ["queue"],
    (gauge) => {
      for (const { name } of schedules) gauge.set({ queue: name }, held.has(name) ? 1 : 0);
    },
  );
  const repaired = metrics.counter(
    "conversation_export_job_schedule_repairs_total",
    "schedules that had lost their next run",
    ["queue"],
  );

  const put = async (queue: JobQueue, { name, data }: Schedule, every: number): Promise<void> => {
    const opts = jobOptionsOf(name);
    await queue.upsertJobScheduler(name, { every }, { name, data: { input: data }, opts });
  };

  /** Two checks, since for a moment there is no next run while one begins. */
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
    if (await holds.isHeld(name)) held.add(name);
    else held.delete(name);
    const wanted = held.has(name)
      ? undefined
      : schedules.find((one) => one.name === name && one.everyMs !== null);
    const known = await queue.getJobSchedulers();
    for (const { key } of known) {
      if (!(atStart || held.has(name)) || (wanted !== undefined && key === name)) continue;
      await queue.removeJobScheduler(key);
      log.info({ queue: name, schedule: key }, "a schedule is removed");
    }
    // The run that a held schedule missed stays, so that it counts as late.
    if (held.has(name)) return;
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

  const alignAll = async (atStart: boolean): Promise<boolean> => {
    const lock = lockOf(LOCK_KEY, LOCK_MS);
    if (!(await lock.take())) return false;
    try {
      for (const name of JOB_NAMES) await align(name, atStart);
    } finally {
      await lock.release().catch(() => undefined);
    }
    return true;
  };

  let aligned = false;
  let done = false;
  const check = async (): Promise<void> => {
    done = false;
    try {
      done = await alignAll(!aligned);
      aligned ||= done;
    } catch (error) {
      log.warn({ error: String(error) }, "checking the schedules failed");
    }
  };
  const watch = createLoop({
    turn: check,
    pauseMs: () => (done ? checkEveryMs : 1_000 * (1 + Math.random())),
  });

  return {
    start: async (): Promise<void> => {
      await redis.start();
      await watch.start();
    },
    stop: async (): Promise<void> => {
      // Before the connection closes, so that a check releases its lock.
      await watch.stop();
      await redis.stop();
      await queues.close();
    },
  };
};
