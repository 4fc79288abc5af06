import type { JobView } from "@conversation-export/queue";

/** Codes of failures that lie in what the job was asked for, or in what has gone since: they come back every time. */
const WRONG_INPUT: ReadonlySet<string> = new Set([
  "backfill_window",
  "place_without_topic",
  "reconcile_window",
  "source_changed",
  "too_many_parts",
  "unknown_letter",
  "unknown_topic",
]);

/** Of a job in parts the reason names the first part that failed, and why it did. */
const OF_PART = /^parts_failed: \d+ of \d+ parts failed; \S+: /;

/** true: trying a failed job again cannot help, another one is needed. */
export const wasAskedWrongly = ({ reason }: Pick<JobView, "reason">): boolean => {
  const code = /^(\w+): /.exec((reason ?? "").replace(OF_PART, ""))?.[1];
  return code !== undefined && WRONG_INPUT.has(code);
};
