import { expect, test } from "vitest";
import type { JobView } from "@conversation-export/queue";
import { renderHeld, renderJobs } from "./job-output.ts";

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
  const job: JobView = {
    id: "repeat:erasure:1",
    name: "erasure",
    state: "completed",
    cancelling: false,
    attempt: 1,
    progress: null,
    parts: null,
    reason: null,
    addedAt: new Date(0),
    lastStartedAt: null,
    endedAt: null,
    nextAttemptAt: null,
    data: {},
    result: { held: 2 },
  };
  expect(renderJobs([job])).toContain("2 requests await approval");
  expect(renderJobs([{ ...job, result: null }])).not.toContain("await");
  expect(renderJobs([{ ...job, state: "failed", reason: "x: y", result: null }])).toContain("x: y");
});
