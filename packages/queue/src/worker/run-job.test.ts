import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { z } from "zod";
import type { JobContext, JobType } from "../contract/job.ts";
import { type JobWork, runJob, runSplitJob } from "./run-job.ts";

const type: JobType<{ n: number }, { sum: number }> = {
  name: "backfill",
  data: z.object({ n: z.int() }),
  result: z.object({ sum: z.int() }),
};
const context = (data: unknown): JobContext<unknown, unknown> => ({
  id: "one",
  data,
  attempt: 1,
  signal: new AbortController().signal,
  log: createLogger({ service: "test", level: "silent" }),
  state: undefined,
  save: () => Promise.resolve(),
  progress: () => Promise.resolve(),
});
const whole = (work: JobWork): Extract<JobWork, { kind: "whole" }> => {
  if (work.kind !== "whole") throw new Error("in parts");
  return work;
};
const split = (work: JobWork): Extract<JobWork, { kind: "split" }> => {
  if (work.kind !== "split") throw new Error("whole");
  return work;
};

it("checks what a job is given and what it gives, and quotes neither", async () => {
  const job = runJob({ type, run: ({ data }) => Promise.resolve({ sum: data.n / 2 }) });
  const { run } = whole(job.work);
  expect(await run(context({ n: 4 }))).toEqual({ sum: 2 });
  await expect(run(context({ n: "jane" }))).rejects.toMatchObject({ code: "bad_data", message: "wrong: n" });
  await expect(run(context(null))).rejects.toMatchObject({ code: "bad_data", message: "wrong: (all)" });
  await expect(run(context({ n: 3 }))).rejects.toMatchObject({ code: "bad_result", message: "wrong: sum" });
});

it("runs no job in parts whose queue of parts the board and the metrics do not know", () => {
  const nothing = () => Promise.reject(new Error("not called"));
  const handler = { part: z.int(), partResult: z.int(), split: nothing, runPart: nothing, finish: nothing };
  expect(() => runSplitJob({ ...handler, type: { ...type, name: "windows" } })).toThrow(
    "windows is no job in parts",
  );
});

it("checks the parts too", async () => {
  const job = runSplitJob({
    type,
    part: z.int(),
    partResult: z.int().max(10),
    split: ({ data }) => Promise.resolve(data.n === 0 ? [0.5] : [1, data.n]),
    runPart: ({ data }) => Promise.resolve(data.job.n * data.part),
    finish: (_, results) => Promise.resolve({ sum: results.reduce((sum, one) => sum + one, 0) }),
  });
  const work = split(job.work);
  expect(await work.split(context({ n: 3 }))).toEqual([1, 3]);
  await expect(work.split(context({ n: 0 }))).rejects.toMatchObject({ code: "bad_part" });
  const part = (n: number, one: unknown) => work.runPart(context({ job: { n }, part: one }));
  expect(await part(3, 2)).toBe(6);
  await expect(part(3, "x")).rejects.toMatchObject({ code: "bad_part" });
  await expect(part(3, 4)).rejects.toMatchObject({ code: "bad_part_result" });
  expect(await work.finish(context({ n: 3 }), [6, 4])).toEqual({ sum: 10 });
  await expect(work.finish(context({ n: 3 }), [undefined])).rejects.toMatchObject({
    code: "bad_part_result",
  });
});
