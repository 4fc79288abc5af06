import { createJobQueues } from "../contract/job-queues.ts";
import type { JobName } from "../contract/job.ts";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";

/** How many of the newest jobs of each state are looked at. */
const NEWEST = 20;
const STATES = ["active", "waiting", "prioritized", "delayed", "completed", "failed"] as const;

/**
 * Tells whether a job of one kind ran at or after an instant (ms since the epoch), or has begun and will go
 * on.
 * @throws ServiceError `redis_unavailable`
 */
export type RanSince = (name: JobName, instant: number) => Promise<boolean>;

export const createRanSince = (deps: { readonly redis: Redis }): RanSince => {
  const queues = createJobQueues(clientOf(deps.redis));
  return (name, instant) =>
    askRedis(async () => {
      const lists = await Promise.all(
        STATES.map((state) => queues.of(name).getJobs([state], 0, NEWEST - 1, false)),
      );
      // A job may be removed between the reading of its id and of its fields.
      return lists
        .flat()
        .filter(Boolean)
        .some(
          ({ processedOn, finishedOn }) =>
            processedOn !== undefined && (finishedOn === undefined || finishedOn >= instant),
        );
    });
};
