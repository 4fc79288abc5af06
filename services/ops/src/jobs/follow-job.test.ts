import type { JobClient, JobView } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createTestDeps } from "../commands/command-deps.fixture.ts";
import { followJob } from "./follow-job.ts";
import { AT, RUNNING_JOB as job } from "./job-view.fixture.ts";

const ended: JobView = { ...job, state: "completed", endedAt: AT };

beforeEach(() => vi.useFakeTimers({ now: AT }));
afterEach(() => vi.useRealTimers());

const follow = (jobs: Pick<JobClient, "follow" | "workers">) => {
  const { out, err, deps } = createTestDeps();
  return { out, err, last: followJob(jobs, job, { ...deps, now: () => new Date() }) };
};

it("says when Redis is lost, until when it waits, and when it is back, and nothing that is old in between", async () => {
  const { out, err, last } = follow({
    async *follow(_name, _id, { onRedis } = {}) {
      yield job;
      onRedis?.(new Date(AT.getTime() + 60_000));
      await vi.advanceTimersByTimeAsync(50_000);
      onRedis?.(null);
      yield ended;
    },
    workers: () => Promise.reject(new Error("not to be asked")),
  });
  expect(await last).toBe(ended);
  expect(out).toEqual([]);
  expect(err).toEqual([
    "backfill-1: 25 %, 2,500 of 10,000 rows",
    "backfill-1: Redis does not answer: this command waits until 2026-11-21T12:01:00.000Z; the job continues when Redis is back",
    "backfill-1: Redis is back",
  ]);
});

it("says what to look at when nothing moves for half a minute", async () => {
  const { err, last } = follow({
    async *follow() {
      yield job;
      await vi.advanceTimersByTimeAsync(29_000);
      expect(err.join("\n")).not.toContain("connected");
      await vi.advanceTimersByTimeAsync(2_000);
      yield ended;
    },
    workers: () => Promise.resolve(0),
  });
  await last;
  expect(err).toContain(
    "backfill-1: no jobs process is connected: start the jobs service, the job waits for it",
  );
});

it("ends as a server that is away when Redis stays away", async () => {
  const { last } = follow({
    async *follow() {
      yield job;
      throw new ServiceError("redis_unavailable", "Redis does not answer", { retryable: true });
    },
    workers: () => Promise.resolve(1),
  });
  await expect(last).rejects.toMatchObject({ exitCode: 3 });
});
