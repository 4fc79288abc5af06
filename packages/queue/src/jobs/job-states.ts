import { createJobQueues } from "../contract/job-queues.ts";
import type { JobName } from "../contract/job.ts";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";

/** @throws ServiceError `redis_unavailable` */
export type JobStates = {
  /** Whether a job has not ended, or has failed and may be retried. */
  mayGoOn(name: JobName, id: string): Promise<boolean>;
};

export const createJobStates = (deps: { readonly redis: Redis }): JobStates => {
  const queues = createJobQueues(clientOf(deps.redis));
  return {
    mayGoOn: async (name, id) => {
      const state = await askRedis(() => queues.of(name).getJobState(id));
      return state !== "unknown" && state !== "completed";
    },
  };
};
