import type { JobView } from "@conversation-export/queue";

export const AT = new Date("2026-11-21T12:00:00Z");

export const RUNNING_JOB: JobView = {
  name: "backfill",
  id: "backfill-1",
  state: "active",
  cancelling: false,
  data: {},
  progress: { done: 2_500, total: 10_000, unit: "rows" },
  parts: null,
  attempt: 1,
  reason: null,
  result: null,
  addedAt: AT,
  lastStartedAt: AT,
  endedAt: null,
  nextAttemptAt: null,
};
