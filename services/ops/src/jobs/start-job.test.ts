import { type JobView, retentionJob } from "@conversation-export/queue";
import { expect, it } from "vitest";
import type { CommandDeps } from "../commands/command-deps.ts";
import { followToEnd } from "./start-job.ts";

const at = new Date("2026-11-21T12:00:00Z");
const ended = (state: "completed" | "failed"): JobView =>
  ({
    id: "retention-1",
    name: retentionJob.name,
    state,
    result: { tables: [] },
    addedAt: at,
    endedAt: at,
  }) as never;

const run = async (job: JobView): Promise<{ out: string[]; err: string[]; thrown: unknown }> => {
  const [out, err]: [string[], string[]] = [[], []];
  const deps: CommandDeps = {
    env: {},
    print: (text) => out.push(text),
    say: (text) => err.push(text),
    terminal: null,
    screen: null,
    now: () => at,
    catchInterrupt: () => ({ signal: new AbortController().signal, release: () => undefined }),
  };
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
