import { expect, test } from "vitest";
import { renderHeld, renderJobs } from "./job-output.ts";
import { RUNNING_JOB } from "./job-view.fixture.ts";

test("a schedule that is held is named with its reason and what to do", () => {
  const until = new Date("2026-11-21T12:00:00Z");
  const held = {
    name: "compact",
    job: "repeat:compact:1",
    reason: "warehouse_limit: too much",
    until,
  } as const;
  expect(renderHeld([held])).toEqual([
    "the schedule of compact is held until 2026-11-21T12:00:00.000Z, since repeat:compact:1 failed for good: warehouse_limit: too much. `export-ops jobs retry repeat:compact:1` goes on",
  ]);
  expect(renderHeld([])).toEqual([]);
});

test("a list of jobs says what waits for an operator, or why one failed", () => {
  const job = { ...RUNNING_JOB, name: "erasure", state: "completed", result: { held: 2 } } as const;
  expect(renderJobs([job])).toContain("2 requests await approval");
  expect(renderJobs([{ ...job, result: null }])).not.toContain("await");
  expect(renderJobs([{ ...job, state: "failed", reason: "x: y", result: null }])).toContain("x: y");
});
