import type { Redis as Client } from "ioredis";
import { KEY_PREFIX } from "../contract/job-queues.ts";
import { JOB_NAMES, type JobName } from "../contract/job.ts";

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

const answersOf = (results: readonly (readonly [Error | null, unknown])[] | null): unknown[] =>
  (results ?? []).map(([error, answer]) => {
    if (error !== null) throw error;
    return answer;
  });

export const readBacklog = async (client: Client, failedSince: number): Promise<readonly QueueBacklog[]> => {
  const counting = client.pipeline();
  for (const name of JOB_NAMES) {
    const key = (suffix: string): string => `${KEY_PREFIX}:${name}:${suffix}`;
    counting
      .llen(key("wait"))
      .zcard(key("prioritized"))
      .llen(key("active"))
      .zcard(key("delayed"))
      .zcard(key("waiting-children"))
      .zcard(key("failed"))
      .zcount(key("failed"), failedSince, "+inf")
      .lrange(key("wait"), -1, -1)
      .zrange(key("repeat"), "0", "0", "WITHSCORES");
  }
  const answers = answersOf(await counting.exec());
  const each = answers.length / JOB_NAMES.length;
  const found = JOB_NAMES.map((name, at) => {
    const [waiting, prioritized, active, delayed, parts, failed, failedLately, oldest, next] = answers.slice(
      at * each,
      (at + 1) * each,
    ) as [number, number, number, number, number, number, number, string[], string[]];
    const [, nextAt] = next;
    return {
      name,
      oldest: oldest[0],
      counts: { waiting: waiting + prioritized, active, delayed, parts, failed, failedSince: failedLately },
      nextRunAt: nextAt === undefined ? null : Number(nextAt),
    };
  });
  const asking = client.pipeline();
  for (const { name, oldest } of found)
    if (oldest !== undefined)
      asking.hmget(`${KEY_PREFIX}:${name}:${oldest}`, "timestamp", "delay", "processedOn");
  const times = answersOf(asking.length === 0 ? [] : await asking.exec()) as (string | null)[][];
  return found.map(({ name, oldest, counts, nextRunAt }) => {
    const [added, delay, begun] = oldest === undefined ? [] : (times.shift() ?? []);
    // When a job was given back is not stored; it has waited at most since its last attempt.
    const since = added == null ? null : Math.max(Number(added) + Number(delay ?? 0), Number(begun ?? 0));
    return { name, ...counts, oldestWaitingSince: since, nextRunAt };
  });
};
