import { createJobQueues } from "../contract/job-queues.ts";
import type { JobName } from "../contract/job.ts";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";

export const createJobStates = (deps: { readonly redis: Redis }) => {
  const queues = createJobQueues(clientOf(deps.redis));
  return {
    /** unknown: another Redis may know the job. */
    of: async (name: JobName, id: string): Promise<"completed" | "unknown" | "open"> => {
      const state = await askRedis(() => queues.of(name).getJobState(id));
      return state === "completed" || state === "unknown" ? state : "open";
    },
  };
};
