import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createJobWorkers,
  type JobHandler,
  type JobType,
  runJob,
  runSplitJob,
} from "@conversation-export/queue";
import { createLogger, createMetrics, ServiceError } from "@conversation-export/runtime";

type Counting = {
  steps: number;
  pauseMs: number;
  trouble?: "retryable" | "final" | "found" | "bug" | undefined;
};
type Counted = { counted: number; attempts: number };
type Adding = { parts: number; pauseMs: number; broken: number | null };
type Added = { sum: number; order: number[] };

process.on("disconnect", () => process.exit());

const integers = <T>(...fields: string[]): JobType<T, T>["data"] => {
  const isWrong = (value: unknown, field: string) =>
    !Number.isInteger((value as Record<string, unknown>)[field]);
  const safeParse = (value: unknown) => {
    const issues = fields.filter((field) => isWrong(value, field)).map((field) => ({ path: [field] }));
    return issues.length === 0 ? { success: true, data: value } : { success: false, error: { issues } };
  };
  return { safeParse } as unknown as JobType<T, T>["data"];
};

/** `trouble` is what a step throws. */
export const countingJob: JobType<Counting, Counted> = {
  name: "compact",
  data: integers("steps", "pauseMs"),
  result: integers("counted", "attempts"),
};

/** Part `broken` fails until it is mended. */
export const addingJob: JobType<Adding, Added> = {
  name: "backfill",
  data: integers("parts", "pauseMs"),
  result: integers("sum"),
};

export type RunnerArguments = {
  readonly url: string;
  readonly diary: string;
  readonly lockMs: number;
  readonly mended: boolean;
  readonly atOnce?: { readonly globalConcurrency: number; readonly concurrency: number };
  /** Before it saves this step it waits for the file, then blocks the process for `ms`. */
  readonly blocks?: { readonly step: number; readonly file: string; readonly ms: number };
};

if (process.argv[2] !== undefined) {
  const { url, diary, lockMs, mended, atOnce, blocks } = JSON.parse(process.argv[2]) as RunnerArguments;
  const write = (line: string): void => appendFileSync(diary, `${line}\n`);
  let blocked = false;
  const log = createLogger({ service: "runner", level: "silent" });

  const countingHandler: JobHandler<Counting, Counted, number> = {
    type: countingJob,
    run: async ({ id, data, state = 0, signal, save, progress, attempt }) => {
      write(`${id} begins ${state}`);
      try {
        for (let step = state; step < data.steps; step++) {
          signal.throwIfAborted();
          if (data.trouble === "retryable" && attempt < 2) {
            throw new ServiceError("away", "not now", { retryable: true });
          }
          if (data.trouble === "final") throw new ServiceError("never", "not ever");
          if (data.trouble === "found") throw new ServiceError("found", "something is wrong");
          if (data.trouble === "bug") throw new TypeError("jane@example.com is not a function");
          await sleep(data.pauseMs, undefined, { signal });
          write(`${id} step ${step}`);
          if (blocks?.step === step && !blocked) {
            while (!existsSync(blocks.file)) await sleep(20, undefined, { signal });
            blocked = true;
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blocks.ms);
          }
          await save(step + 1);
          write(`${id} saved ${step}`);
          await progress({ done: step + 1, total: data.steps, unit: "steps" });
        }
      } catch (error) {
        write(`${id} stops ${signal.aborted ? (signal.reason as ServiceError).code : String(error)}`);
        throw error;
      }
      return { counted: data.steps, attempts: attempt };
    },
  };
  const counting = runJob(countingHandler, { findings: ["found"], ...atOnce });
  const adding = runSplitJob({
    type: addingJob,
    part: integers<number>(),
    partResult: integers<number>(),
    split: ({ data }) => Promise.resolve(Array.from({ length: data.parts }, (_, index) => index + 1)),
    runPart: async ({ data: { job, part }, signal, progress }) => {
      write(`part ${part} begins in ${process.pid}`);
      await sleep(job.pauseMs, undefined, { signal });
      if (part === job.broken && !mended) throw new ServiceError("broken", `part ${part} is broken`);
      await progress({ done: 10, total: 10, unit: "rows" });
      write(`part ${part}`);
      return part;
    },
    finish: ({ data }, results) => {
      write(`finish ${data.parts}`);
      return Promise.resolve({ sum: results.reduce((sum, one) => sum + one, 0), order: [...results] });
    },
  });
  const workers = createJobWorkers({
    url,
    jobs: [counting, adding],
    lockMs,
    stopWithinMs: 60_000,
    metrics: createMetrics({ service: "runner" }),
    log,
  });
  process.on("SIGTERM", () => void workers.stop().then(() => process.exit(0)));
  await workers.start();
  process.send?.("ready");
}
