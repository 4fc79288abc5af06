import { type Logger, retry, ServiceError } from "@conversation-export/runtime";
import type { Job } from "bullmq";
import { type JobQueues, KEY_PREFIX, partQueueOf } from "../contract/job-queues.ts";
import type { JobContext, JobName, JobProgress } from "../contract/job.ts";
import { readStoredData, type StoredData } from "../contract/stored-data.ts";
import type { ActiveJob } from "./active-jobs.ts";
import type { FencedWrite } from "./fenced-write.ts";
import { STOP_REASONS } from "./job-failure.ts";
import { createProgressWriter } from "./job-progress.ts";
import type { JobWork } from "./run-job.ts";
import { awaitParts } from "./split-job.ts";

type StoredJob = Job<StoredData, unknown>;

export type AttemptSurroundings = {
  readonly queues: JobQueues;
  readonly write: FencedWrite;
  readonly notePart: (name: JobName, parentId: string, index: number, progress: JobProgress) => Promise<void>;
  readonly lockMs: number;
};

export const createAttempt = (
  deps: AttemptSurroundings & {
    readonly name: JobName;
    readonly parts: boolean;
    readonly work: JobWork;
  },
) => {
  const { name, parts, work, queues, write, lockMs } = deps;
  const queue = parts ? partQueueOf(name) : name;

  const store = async (
    job: StoredJob,
    token: string,
    running: ActiveJob,
    stored: StoredData,
  ): Promise<void> => {
    running.signal.throwIfAborted();
    const written = await retry(
      async () => {
        try {
          return await write(keyOf(queue, job), token, "data", stored);
        } catch (error) {
          const message = "Redis does not take what the job saves";
          throw new ServiceError("redis_unavailable", message, { retryable: true, cause: error });
        }
      },
      { signal: running.signal, deadlineMs: lockMs },
    );
    if (written) return;
    running.stop("lock_lost");
    throw STOP_REASONS.lock_lost();
  };

  return async (attempt: {
    readonly job: StoredJob;
    readonly token: string;
    readonly running: ActiveJob;
    readonly log: Logger;
  }): Promise<unknown> => {
    const { job, token, running, log } = attempt;
    let stored = readStoredData(job.data);
    const save = async (next: StoredData): Promise<void> => {
      await store(job, token, running, next);
      stored = next;
    };
    const progress = createProgressWriter(async (value) => {
      const { parent } = stored;
      if (parent !== undefined) await deps.notePart(name, parent.id, parent.index, value);
      await write(keyOf(queue, job), token, "progress", value);
    });
    const context: JobContext<unknown, unknown> = {
      id: job.id ?? "",
      data: stored.input,
      attempt: job.attemptsMade + 1,
      signal: running.signal,
      log,
      state: stored.state,
      save: (state) => save({ ...stored, state }),
      progress: progress.report,
    };
    try {
      if (work.kind === "whole") return await work.run(context);
      if (parts) return await work.runPart(context);
      const results = await awaitParts({
        job,
        token,
        stored,
        partQueue: queues.of(partQueueOf(name)),
        signal: running.signal,
        split: () => work.split(context),
        save,
      });
      return await work.finish(context, results);
    } finally {
      await progress.flush();
    }
  };
};

const keyOf = (queue: string, job: StoredJob): string => `${KEY_PREFIX}:${queue}:${job.id}`;
