import {
  failSpan,
  type Logger,
  retry,
  ServiceError,
  startSpan,
  withinSpan,
} from "@conversation-export/runtime";
import { type Job, WaitingChildrenError, WaitingError, Worker } from "bullmq";
import type { Redis as Client } from "ioredis";
import type { ActiveJob, ActiveJobs } from "./active-jobs.ts";
import type { FencedWrite } from "./fenced-write.ts";
import { codeOfFailure, STOP_REASONS, toQueueError } from "./job-failure.ts";
import type { AttemptMetrics, AttemptOutcome } from "./job-metrics.ts";
import { createProgressWriter } from "./job-progress.ts";
import { JOB_OPTIONS, type JobQueues, KEY_PREFIX, cancelKeyOf, partQueueOf } from "./job-queues.ts";
import type { JobContext, JobName, JobProgress } from "./job.ts";
import type { JobWork } from "./run-job.ts";
import { awaitParts } from "./split-job.ts";
import { readStoredData, type StoredData } from "./stored-data.ts";

/** So many deaths of its worker a job survives. */
const MAX_STALLS = 20;
const RETRY_REDIS_AFTER_MS = 1_000;
const RETURN_WITHIN_MS = 5_000;

type StoredJob = Job<StoredData, unknown>;

/** What all workers of a process share. */
export type WorkerSurroundings = {
  /** Waits for Redis as long as it takes. */
  readonly patient: Client;
  readonly queues: JobQueues;
  readonly active: ActiveJobs;
  readonly write: FencedWrite;
  /** Keeps what a part of a split job says of its progress. */
  readonly notePart: (name: JobName, parentId: string, index: number, progress: JobProgress) => Promise<void>;
  readonly lockMs: number;
  readonly metrics: AttemptMetrics;
  readonly log: Logger;
};

/** Runs the jobs of one queue: those of `name`, or the parts of them. */
export const createJobWorker = (
  deps: WorkerSurroundings & {
    readonly name: JobName;
    readonly parts: boolean;
    readonly work: JobWork;
    readonly concurrency: number;
  },
): Worker<StoredData, unknown> => {
  const { name, parts, work, active, write, metrics, lockMs, patient, queues } = deps;
  const queue = parts ? partQueueOf(name) : name;

  /** @throws ServiceError `lock_lost`, `redis_unavailable` */
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

  const attempt = async (
    job: StoredJob,
    token: string,
    running: ActiveJob,
    log: Logger,
  ): Promise<unknown> => {
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
        name,
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

  /** What the queue is to do with a job that did not end well. */
  const settle = async (
    error: unknown,
    job: StoredJob,
    token: string,
    running: ActiveJob,
    log: Logger,
  ): Promise<{ outcome: AttemptOutcome; error: Error }> => {
    const stop = running.signal.aborted ? (running.signal.reason as ServiceError) : null;
    if (stop === null) {
      log.warn({ err: error }, "an attempt of a job failed");
      return { outcome: "failed", error: toQueueError(error) };
    }
    if (stop.code === "cancelled") return { outcome: "cancelled", error: toQueueError(stop) };
    // Without the lock it is somebody else's, or will be when the missing lock is noticed.
    if (patient.status === "ready") {
      await within(RETURN_WITHIN_MS, job.moveToWait(token)).catch(() => undefined);
    }
    return { outcome: "returned", error: new WaitingError() };
  };

  const run = async (
    job: StoredJob,
    token: string,
    onEnd: (outcome: AttemptOutcome, error?: unknown) => void,
  ): Promise<unknown> => {
    const log = deps.log.child({ queue, job: job.id });
    const { parent } = readStoredData(job.data);
    const begunAt = performance.now();
    const running = await active.begin({
      queue,
      id: job.id ?? "",
      cancelKey: cancelKeyOf(name, parent?.id ?? job.id ?? ""),
    });
    let outcome: AttemptOutcome = "completed";
    let failure: unknown;
    try {
      running.signal.throwIfAborted();
      log.info({ attempt: job.attemptsMade + 1 }, "job begins");
      return await attempt(job, token, running, log);
    } catch (error) {
      if (error instanceof WaitingChildrenError) {
        outcome = "split";
        throw error;
      }
      failure = error;
      const settled = await settle(error, job, token, running, log);
      outcome = settled.outcome;
      throw settled.error;
    } finally {
      active.end(running);
      const seconds = (performance.now() - begunAt) / 1000;
      metrics.seconds.observe({ queue, outcome }, seconds);
      log.info({ outcome, seconds: Math.round(seconds) }, "job ends");
      onEnd(outcome, failure);
    }
  };

  /** Each attempt is a trace of its own, with the statements that it sends. */
  const process = async (job: StoredJob, token = ""): Promise<unknown> => {
    const span = startSpan(`job ${queue}`, null, {
      attributes: {
        "conversation_export.job.queue": queue,
        "conversation_export.job.id": job.id ?? "",
        "conversation_export.job.attempt": job.attemptsMade + 1,
      },
    });
    const note = (outcome: AttemptOutcome, error?: unknown): void => {
      span.setAttribute("conversation_export.job.outcome", outcome);
      if (outcome === "failed") failSpan(span, error);
    };
    try {
      return await withinSpan(span, () => run(job, token, note));
    } finally {
      span.end();
    }
  };

  const worker = new Worker<StoredData, unknown>(queue, process, {
    connection: patient,
    prefix: KEY_PREFIX,
    skipVersionCheck: true,
    autorun: false,
    concurrency: deps.concurrency,
    lockDuration: lockMs,
    stalledInterval: lockMs / 2,
    maxStalledCount: MAX_STALLS,
    runRetryDelay: RETRY_REDIS_AFTER_MS,
    removeOnComplete: JOB_OPTIONS.removeOnComplete,
    removeOnFail: JOB_OPTIONS.removeOnFail,
  });
  worker.on("locksRenewed", ({ jobIds }) => active.renewed(queue, jobIds));
  worker.on("lockRenewalFailed", (jobIds) => active.lost(queue, jobIds));
  worker.on("stalled", (id) => {
    metrics.stalls.inc({ queue });
    deps.log.warn({ queue, job: id }, "the worker of a job is gone, the job waits again");
  });
  worker.on("failed", (_, error) => metrics.failures.inc({ queue, reason: codeOfFailure(error.message) }));
  worker.on("error", (error) => deps.log.debug({ queue, error: error.message }, "trouble of a worker"));
  return worker;
};

const keyOf = (queue: string, job: StoredJob): string => `${KEY_PREFIX}:${queue}:${job.id}`;

const within = async (ms: number, work: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};
