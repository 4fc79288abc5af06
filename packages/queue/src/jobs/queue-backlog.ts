import type { Redis as Client } from "ioredis";
import { type JobQueues, KEY_PREFIX } from "../contract/job-queues.ts";
import { JOB_NAMES, type JobName } from "../contract/job.ts";
import { countsOf } from "./read-jobs.ts";

/** Jobs in parts count once. */
export type QueueBacklog = {
  readonly name: JobName;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly parts: number;
  readonly failed: number;
  readonly failedSince: number;
  /** At the longest, ms since the epoch. */
  readonly oldestWaitingSince: number | null;
  /** ms since the epoch. */
  readonly nextRunAt: number | null;
};

/** Asked every few seconds, so data of jobs is not read. */
export const readBacklog = (
  deps: { readonly client: Client; readonly queues: JobQueues },
  since: number,
): Promise<readonly QueueBacklog[]> => {
  const { client, queues } = deps;
  return Promise.all(
    JOB_NAMES.map(async (name) => {
      const key = `${KEY_PREFIX}:${name}`;
      const [counts, failedSince, oldestWaitingSince, [, next]] = await Promise.all([
        queues.of(name).getJobCounts(),
        client.zcount(`${key}:failed`, since, "+inf"),
        readOldestWaiting(client, name),
        client.zrange(`${key}:repeat`, "0", "0", "WITHSCORES"),
      ]);
      const { waiting, active, delayed, parts, failed } = countsOf(counts);
      const present = { waiting, active, delayed, parts, failed, failedSince };
      return { name, ...present, oldestWaitingSince, nextRunAt: next === undefined ? null : Number(next) };
    }),
  );
};

/** Since when the oldest job that could run waits, at the longest, ms since the epoch; null: none does. */
export const readOldestWaiting = async (
  client: Pick<Client, "lindex" | "hmget">,
  queue: string,
): Promise<number | null> => {
  const key = `${KEY_PREFIX}:${queue}`;
  const oldest = await client.lindex(`${key}:wait`, -1);
  if (oldest === null) return null;
  const [added, options, begun] = await client.hmget(`${key}:${oldest}`, "timestamp", "opts", "processedOn");
  if (added == null) return null;
  // The job's own delay is 0 from when it could run.
  const { delay = 0 } = JSON.parse(options ?? "{}") as { readonly delay?: number };
  // When a job was given back is not stored; it has waited at most since its last attempt.
  return Math.max(Number(added) + delay, Number(begun ?? 0));
};
