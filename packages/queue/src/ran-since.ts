import { createJobQueues } from "./job-queues.ts";
import type { JobName } from "./job.ts";
import { askRedis, clientOf, type Redis } from "./redis.ts";

/** The newest jobs of each state that are looked at. */
const NEWEST = 20;
const STATES = ["active", "waiting", "prioritized", "delayed", "completed", "failed"] as const;

/**
 * Whether a job of one kind was at work at or after an instant (ms since the epoch), or has begun and is to go on. Throws
 * ServiceError `redis_unavailable`.
 */
export type RanSince = (name: JobName, instant: number) => Promise<boolean>;

export const createRanSince = (deps: { readonly redis: Redis }): RanSince => {
  const queues = createJobQueues(clientOf(deps.redis));
  return (name, instant) =>
    askRedis(async () => {
      const lists = await Promise.all(
        STATES.map((state) => queues.of(name).getJobs([state], 0, NEWEST - 1, false)),
      );
      // A job may be gone between its id and its fields.
      return lists
        .flat()
        .filter(Boolean)
        .some(
          ({ processedOn, finishedOn }) =>
            processedOn !== undefined && (finishedOn === undefined || finishedOn >= instant),
        );
    });
};
