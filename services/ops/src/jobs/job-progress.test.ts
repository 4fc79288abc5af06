import type { JobView } from "@conversation-export/queue";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createJobProgress, describeProgress } from "./job-progress.ts";
import { AT, RUNNING_JOB as job } from "./job-view.fixture.ts";

const later = (seconds: number) => new Date(AT.getTime() + seconds * 1000);

it.each<[Partial<JobView>, string]>([
  [{}, "25 %, 2,500 of 10,000 rows"],
  [{ progress: null }, "runs"],
  [
    { progress: { done: 7, total: null, unit: "rows", note: "waits for ingest" } },
    "runs, 7 rows, waits for ingest",
  ],
  [{ progress: null, parts: { total: 8, done: 2, failed: 1 } }, "25 %, 2 of 8 parts, 1 failed"],
  [{ progress: { done: 0, total: 0, unit: "rows" } }, "runs, 0 of 0 rows"],
  [{ cancelling: true }, "is being cancelled"],
  [{ state: "waiting", lastStartedAt: null, progress: null }, "waits for a worker"],
  [
    { state: "delayed", attempt: 2, reason: "warehouse_unavailable: ECONNREFUSED", nextAttemptAt: later(8) },
    "attempt 2 failed: warehouse_unavailable: ECONNREFUSED, tries again at 2026-11-21T12:00:08.000Z",
  ],
])("%j is reported as %s", (change, text) => {
  expect(describeProgress({ ...job, ...change })).toBe(text);
});

describe("where there is no terminal", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("says a line every few seconds, and one without news twice a minute", () => {
    const said: string[] = [];
    const progress = createJobProgress({ id: job.id, say: (line) => said.push(line), terminal: null });
    progress.show(job);
    expect(said).toEqual(["backfill-1: 25 %, 2,500 of 10,000 rows"]);
    progress.show({ ...job, progress: { done: 3_000, total: 10_000, unit: "rows" } });
    expect(said).toHaveLength(1);
    vi.advanceTimersByTime(5_000);
    expect(said[1]).toContain("30 %");
    vi.advanceTimersByTime(25_000);
    expect(said).toHaveLength(2);
    vi.advanceTimersByTime(5_000);
    expect(said).toHaveLength(3);
    progress.show({ ...job, state: "delayed", reason: "x" });
    expect(said[3]).toContain("attempt 1 failed");
    progress.stop();
    vi.advanceTimersByTime(60_000);
    expect(said).toHaveLength(4);
  });

  it("does not repeat what may be old", () => {
    const said: string[] = [];
    const progress = createJobProgress({ id: job.id, say: (line) => said.push(line), terminal: null });
    progress.show(job);
    progress.report("Redis does not answer", true);
    expect(said[1]).toBe("backfill-1: Redis does not answer");
    vi.advanceTimersByTime(120_000);
    expect(said).toHaveLength(2);
    progress.report("Redis is back");
    vi.advanceTimersByTime(30_000);
    expect(said[3]).toContain("25 %");
    progress.stop();
  });
});
