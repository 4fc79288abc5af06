import {
  failSpan,
  type Logger,
  ServiceError,
  type Span,
  startSpan,
  within,
  withinSpan,
} from "@conversation-export/runtime";
import { type Job, UnrecoverableError, WaitingChildrenError, WaitingError, Worker } from "bullmq";
import type { Redis as Client } from "ioredis";
import { cancelKeyOf, jobOptionsOf, KEY_PREFIX, partQueueOf } from "../contract/job-queues.ts";
import type { JobName } from "../contract/job.ts";
import type { HeldSchedules } from "../jobs/held-schedules.ts";
import { readStoredData, type StoredData } from "../contract/stored-data.ts";
import type { ActiveJob, ActiveJobs } from "./active-jobs.ts";
import { type AttemptSurroundings, createAttempt } from "./attempt.ts";
import { codeOfFailure, toQueueError } from "./job-failure.ts";
import type { AttemptMetrics, AttemptOutcome } from "./job-metrics.ts";
import type { JobWork } from "./run-job.ts";

/** Deaths of its worker that a job survives. */
const MAX_STALLS = 20;
const RETRY_REDIS_AFTER_MS = 1_000;
const RETURN_WITHIN_MS = 5_000;

/** The schedule added the job before it was held. */
const HELD = "schedule_held";

type StoredJob = Job<StoredData, unknown>;

const isOfSchedule = (job: StoredJob): boolean => job.repeatJobKey !== undefined;

export type WorkerSurroundings = AttemptSurroundings & {
  readonly patient: Client;
  readonly active: ActiveJobs;
  readonly holds: Pick<HeldSchedules, "hold" | "isHeld">;
  readonly metrics: AttemptMetrics;
  readonly log: Logger;
};

export const createJobWorker = (
  deps: WorkerSurroundings & {
    readonly name: JobName;
    readonly parts: boolean;
    readonly work: JobWork;
    readonly findings: readonly string[];
    readonly concurrency: number;
  },
): Worker<StoredData, unknown> => {
  const { name, parts, active, holds, metrics, lockMs, patient } = deps;
  const queue = parts ? partQueueOf(name) : name;
  const attempt = createAttempt(deps);

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
    // Without its lock another worker has the job, or gets it as stalled.
    if (patient.status === "ready") {
      await within(job.moveToWait(token), RETURN_WITHIN_MS, () => undefined).catch(() => undefined);
    }
    return { outcome: "returned", error: new WaitingError() };
  };

  const run = async (job: StoredJob, token: string, span: Span): Promise<unknown> => {
    const log = deps.log.child({ queue, job: job.id });
    const { parent } = readStoredData(job.data);
    const begunAt = performance.now();
    const running = await active.begin({
      queue,
      id: job.id ?? "",
      cancelKey: cancelKeyOf(name, parent?.id ?? job.id ?? ""),
    });
    let outcome: AttemptOutcome = "completed";
    try {
      running.signal.throwIfAborted();
      // What was begun goes on, so that nothing is left half done.
      if (isOfSchedule(job) && job.attemptsStarted <= 1 && (await holds.isHeld(name).catch(() => false)))
        throw new ServiceError(HELD, "an earlier job of the schedule failed for a reason that does not pass");
      log.info({ attempt: job.attemptsMade + 1 }, "job begins");
      return await attempt({ job, token, running, log });
    } catch (error) {
      if (error instanceof WaitingChildrenError) {
        outcome = "split";
        throw error;
      }
      const settled = await settle(error, job, token, running, log);
      outcome = settled.outcome;
      if (outcome === "failed") failSpan(span, error);
      throw settled.error;
    } finally {
      active.end(running);
      const seconds = (performance.now() - begunAt) / 1000;
      metrics.seconds.observe({ queue, outcome }, seconds);
      log.info({ outcome, seconds: Math.round(seconds) }, "job ends");
      span.setAttribute("conversation_export.job.outcome", outcome).end();
    }
  };

  const process = (job: StoredJob, token = ""): Promise<unknown> => {
    const span = startSpan(`job ${queue}`, null, {
      attributes: {
        "conversation_export.job.queue": queue,
        "conversation_export.job.id": job.id ?? "",
        "conversation_export.job.attempt": job.attemptsMade + 1,
      },
    });
    return withinSpan(span, () => run(job, token, span));
  };

  /** The next run would fail too. */
  const holdSchedule = (job: StoredJob, error: Error): void => {
    const code = codeOfFailure(error.message);
    const passes =
      !(error instanceof UnrecoverableError) || ["cancelled", HELD, ...deps.findings].includes(code);
    if (passes || !isOfSchedule(job)) return;
    deps.log.error(
      { queue, job: job.id, err: error },
      "a schedule is paused for a day, its job failed for good",
    );
    // The next run may already wait before this one ends.
    void holds
      .hold(name, job.id ?? "", error.message)
      .then(() => deps.queues.of(name).removeJobScheduler(name))
      .catch((failure: unknown) => deps.log.warn({ err: failure }, "pausing the schedule failed"));
  };

  const { removeOnComplete, removeOnFail } = jobOptionsOf(queue);
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
    removeOnComplete,
    removeOnFail,
  });
  worker.on("locksRenewed", ({ jobIds }) => active.renewed(queue, jobIds));
  worker.on("lockRenewalFailed", (jobIds) => active.lost(queue, jobIds));
  worker.on("stalled", (id) => {
    metrics.stalls.inc({ queue });
    deps.log.warn({ queue, job: id }, "the worker of a job is gone, the job waits again");
  });
  worker.on("failed", (job, error) => {
    metrics.failures.inc({ queue, reason: codeOfFailure(error.message) });
    if (job !== undefined) holdSchedule(job, error);
  });
  worker.on("error", (error) => deps.log.debug({ queue, error: error.message }, "trouble of a worker"));
  return worker;
};
