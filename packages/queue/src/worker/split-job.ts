import { ServiceError } from "@conversation-export/runtime";
import { type Job, WaitingChildrenError } from "bullmq";
import { codeOfFailure } from "./job-failure.ts";
import type { JobQueue } from "../contract/job-queues.ts";
import type { StoredData } from "../contract/stored-data.ts";

const MAX_PARTS = 10_000;
const PARTS_AT_ONCE = 200;

type StoredJob = Job<StoredData, unknown>;

/** In order; throws `WaitingChildrenError` while parts are missing. */
export const awaitParts = async (deps: {
  readonly job: StoredJob;
  readonly token: string;
  readonly stored: StoredData;
  readonly partQueue: JobQueue;
  readonly signal: AbortSignal;
  readonly split: () => Promise<readonly unknown[]>;
  readonly save: (stored: StoredData) => Promise<void>;
}): Promise<readonly unknown[]> => {
  const { job, token, stored, partQueue, signal, save } = deps;
  const plan = stored.plan ?? (await deps.split());
  if (plan.length > MAX_PARTS) {
    throw new ServiceError("too_many_parts", `more than ${MAX_PARTS} parts: take a smaller window`);
  }
  if (stored.plan === undefined) await save({ ...stored, plan });

  const idOf = (index: number): string => partIdOf(job, index);
  const read = async () => {
    const values = await job.getChildrenValues<unknown>();
    const parts = plan.map((part, index) => ({
      part,
      index,
      result: values[`${partQueue.qualifiedName}:${idOf(index)}`],
    }));
    return {
      results: parts.map(({ result }) => result),
      missing: parts.filter(({ result }) => result === undefined),
    };
  };

  const { results, missing } = await read();
  if (missing.length === 0) return results;

  if (stored.waiting !== true) {
    for (let at = 0; at < missing.length; at += PARTS_AT_ONCE) {
      signal.throwIfAborted();
      await Promise.all(
        missing.slice(at, at + PARTS_AT_ONCE).map(({ part, index }) =>
          startPart(partQueue, idOf(index), job, {
            input: { job: stored.input, part },
            parent: { id: job.id ?? "", index },
          }),
        ),
      );
    }
    await save({ ...stored, plan, waiting: true });
  }
  signal.throwIfAborted();
  if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError();

  const atEnd = await read();
  if (atEnd.missing.length === 0) return atEnd.results;
  // Retrying the job retries the parts that failed.
  await save({ ...stored, plan, waiting: false });
  throw await failureOf(partQueue, job, plan.length, atEnd.missing.length);
};

/** The timestamp tells apart parts of earlier jobs with the same id. */
const partIdOf = (job: StoredJob, index: number): string =>
  `${(job.id ?? "").replaceAll(":", "-")}-${job.timestamp.toString(36)}-part-${index}`;

const startPart = async (queue: JobQueue, id: string, parent: StoredJob, data: StoredData): Promise<void> => {
  const state = await queue.getJobState(id);
  if (state === "failed") {
    const failed = await queue.getJob(id);
    await failed?.retry("failed", { resetAttemptsMade: true });
  }
  if (state !== "unknown") return;
  await queue.add(queue.name, data, {
    jobId: id,
    parent: { id: parent.id ?? "", queue: parent.queueQualifiedName },
    ignoreDependencyOnFailure: true,
  });
};

const failureOf = async (
  partQueue: JobQueue,
  job: StoredJob,
  parts: number,
  missing: number,
): Promise<ServiceError> => {
  const failures = Object.entries(await job.getIgnoredChildrenFailures());
  const reported = failures.find(([, reason]) => codeOfFailure(reason) !== "cancelled") ?? failures[0];
  if (reported === undefined) {
    return new ServiceError("part_lost", `${missing} of ${parts} parts have no result: try the job again`);
  }
  const [key, reason] = reported;
  const id = key.slice(`${partQueue.qualifiedName}:`.length);
  return new ServiceError("parts_failed", `${missing} of ${parts} parts failed; ${id}: ${reason}`);
};
