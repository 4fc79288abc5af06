import { createJobQueues } from "../contract/job-queues.ts";
import type { JobName } from "../contract/job.ts";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";

/** @throws ServiceError `redis_unavailable` */
export type JobStates = {
  /** Whether a job has ended for good. One that this Redis does not know may go on by another. */
  isOver(name: JobName, id: string): Promise<boolean>;
};

export const createJobStates = (deps: { readonly redis: Redis }): JobStates => {
  const queues = createJobQueues(clientOf(deps.redis));
  return {
    isOver: async (name, id) => (await askRedis(() => queues.of(name).getJobState(id))) === "completed",
  };
};
