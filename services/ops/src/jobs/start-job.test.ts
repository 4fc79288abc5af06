import type { JobView } from "@conversation-export/queue";
import { expect, it } from "vitest";
import { createTestDeps } from "../commands/command-deps.fixture.ts";
import { AT, RUNNING_JOB } from "./job-view.fixture.ts";
import { followToEnd } from "./start-job.ts";

const ended = (state: "completed" | "failed"): JobView => ({
  ...RUNNING_JOB,
  id: "retention-1",
  name: "retention",
  state,
  result: { tables: [] },
  endedAt: AT,
});

const run = async (job: JobView): Promise<{ out: string[]; err: string[]; thrown: unknown }> => {
  const { out, err, deps } = createTestDeps();
  const jobs = {
    async *follow() {
      yield job;
    },
    workers: () => Promise.resolve(1),
  };
  const thrown: unknown = await followToEnd(jobs, job, { json: true }, deps, () => "a hint").catch(
    (error: unknown) => error,
  );
  return { out, err, thrown };
};

it("gives the hint to standard error, beside JSON on standard output", async () => {
  const { out, err, thrown } = await run(ended("completed"));
  expect(thrown).toBeUndefined();
  expect(JSON.parse(out.join())).toMatchObject({ id: "retention-1", result: { tables: [] } });
  expect(err.at(-1)).toBe("a hint");
});

it("gives none about a job that failed", async () => {
  const { err, thrown } = await run(ended("failed"));
  expect(thrown).toMatchObject({ exitCode: 1 });
  expect(err).not.toContain("a hint");
});
