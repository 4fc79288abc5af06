import type { Job, JobState as QueueState } from "bullmq";
import type { Redis as Client } from "ioredis";
import {
  cancelKeyOf,
  isReservedId,
  type JobQueues,
  KEY_PREFIX,
  partProgressKeyOf,
} from "../contract/job-queues.ts";
import { JOB_NAMES, type JobName, type JobProgress } from "../contract/job.ts";
import { readStoredData, type StoredData } from "../contract/stored-data.ts";
import { type JobState, type JobView, viewJob } from "./job-view.ts";

/** BullMQ scores a delayed job by its ms times this. */
const DELAY_SCALE = 0x1000;

type StoredJob = Job<StoredData, unknown>;

const QUEUE_STATES: Readonly<Record<JobState, readonly QueueState[]>> = {
  waiting: ["waiting", "prioritized"],
  delayed: ["delayed"],
  active: ["active"],
  parts: ["waiting-children"],
  completed: ["completed"],
  failed: ["failed"],
  cancelled: ["failed"],
};

export type JobCounts = Readonly<Record<JobName, Readonly<Record<Exclude<JobState, "cancelled">, number>>>>;
export type ScheduleView = {
  readonly name: JobName;
  readonly everyMs: number;
  readonly nextRunAt: Date | null;
};

export const createJobReading = (deps: { readonly client: Client; readonly queues: JobQueues }) => {
  const { client, queues } = deps;

  const look = async (job: StoredJob, state: string): Promise<JobView> => {
    const id = job.id ?? "";
    const name = job.queueName as JobName;
    const split = readStoredData(job.data).plan !== undefined;
    const [asked, dependencies, notes, score] = await Promise.all([
      client.exists(cancelKeyOf(name, id)),
      split ? job.getDependenciesCount({ processed: true, unprocessed: true, ignored: true }) : {},
      split ? client.hvals(partProgressKeyOf(name, id)) : [],
      state === "delayed" ? client.zscore(`${KEY_PREFIX}:${name}:delayed`, id) : null,
    ]);
    return viewJob(job, state, {
      name,
      cancelAsked: asked === 1,
      dependencies,
      partProgress: notes.map((note) => JSON.parse(note) as JobProgress),
      nextAttemptAt: score === null ? null : new Date(Math.floor(Number(score) / DELAY_SCALE)),
    });
  };

  const listOf = async (name: JobName, state: JobState, limit: number): Promise<JobView[]> => {
    const found = await Promise.all(
      QUEUE_STATES[state].map(async (queueState) => {
        const jobs = await queues.of(name).getJobs([queueState], 0, limit - 1, false);
        // A job may be removed between the reads of its id and of its fields.
        return Promise.all(jobs.filter(Boolean).map((job) => look(job, queueState)));
      }),
    );
    return found.flat().filter((view) => view.state === state);
  };

  return {
    get: async (name: JobName, id: string): Promise<JobView | null> => {
      if (isReservedId(id)) return null;
      const queue = queues.of(name);
      // The state first, so that an ended job is read with its result.
      const state = await queue.getJobState(id);
      const job = state === "unknown" ? undefined : await queue.getJob(id);
      return job === undefined ? null : look(job, state);
    },
    list: async (
      names: readonly JobName[],
      states: readonly JobState[],
      limit: number,
    ): Promise<JobView[]> => {
      const views: JobView[] = [];
      for (const name of names) {
        views.push(...(await Promise.all(states.map((state) => listOf(name, state, limit)))).flat());
      }
      return views.sort((one, other) => other.addedAt.getTime() - one.addedAt.getTime()).slice(0, limit);
    },
    counts: async (): Promise<JobCounts> => {
      const counts = await Promise.all(
        JOB_NAMES.map(async (name) => [name, countsOf(await queues.of(name).getJobCounts())] as const),
      );
      return Object.fromEntries(counts) as JobCounts;
    },
    schedules: async (): Promise<ScheduleView[]> => {
      const all = await Promise.all(
        JOB_NAMES.map(async (name) =>
          (await queues.of(name).getJobSchedulers()).map(({ every, next }) => ({
            name,
            everyMs: every ?? 0,
            nextRunAt: next === undefined ? null : new Date(next),
          })),
        ),
      );
      return all.flat();
    },
  };
};

export const countsOf = (counts: Readonly<Record<string, number>>): JobCounts[JobName] => {
  const { waiting = 0, prioritized = 0, delayed = 0, active = 0, completed = 0, failed = 0 } = counts;
  const { "waiting-children": parts = 0 } = counts;
  return { waiting: waiting + prioritized, delayed, active, parts, completed, failed };
};
