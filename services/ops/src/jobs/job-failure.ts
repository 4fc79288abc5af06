import type { JobView } from "@conversation-export/queue";

/** A retry fails again. */
const WRONG_INPUT: ReadonlySet<string> = new Set([
  "backfill_rows_gone",
  "backfill_window",
  "place_without_topic",
  "reconcile_window",
  "source_changed",
  "too_many_parts",
  "topic_created_anew",
  "unknown_dead_letter",
  "unknown_topic",
]);

/** Before the first failed part's reason. */
const OF_PART = /^parts_failed: \d+ of \d+ parts failed; \S+: /;

/** Only a new job can help. */
export const wasAskedWrongly = ({ reason }: Pick<JobView, "reason">): boolean => {
  const code = /^(\w+): /.exec((reason ?? "").replace(OF_PART, ""))?.[1];
  return code !== undefined && WRONG_INPUT.has(code);
};
