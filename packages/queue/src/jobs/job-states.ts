import { createJobQueues } from "../contract/job-queues.ts";
import type { JobName } from "../contract/job.ts";
import { askRedis, clientOf, type Redis } from "../redis/redis.ts";

export type JobStates = {
  /** unknown: another Redis may know the job. */
  of(name: JobName, id: string): Promise<"completed" | "unknown" | "open">;
};

export const createJobStates = (deps: { readonly redis: Redis }): JobStates => {
  const queues = createJobQueues(clientOf(deps.redis));
  return {
    of: async (name, id) => {
      const state = await askRedis(() => queues.of(name).getJobState(id));
      return state === "completed" || state === "unknown" ? state : "open";
    },
  };
};
