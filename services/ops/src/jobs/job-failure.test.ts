import { expect, test } from "vitest";
import { wasAskedWrongly } from "./job-failure.ts";

test.each([
  ["backfill_window: nope is not a topic of ingest; those are messages", true],
  ["unknown_dead_letter: no dead letter stands at partition 0, offset 9 of those of messages", true],
  [
    "parts_failed: 1 of 3 parts failed; backfill-1-k3-part-0: source_changed: /a is not the file that was there",
    true,
  ],
  ["parts_failed: 1 of 3 parts failed; backfill-1-k3-part-0: backfill_rows_gone: start a new one", true],
  ["parts_failed: 1 of 3 parts failed; backfill-1-k3-part-0: warehouse_unavailable: ECONNREFUSED", false],
  ["warehouse_setup: ClickHouse says UNKNOWN_TABLE: a grant or a table is missing", false],
  ["records_missing: 3 exports are not readable", false],
  ["bug: TypeError at a.ts:1; the log has the rest", false],
  [null, false],
])("%s: another job is needed: %s", (reason, expected) => {
  expect(wasAskedWrongly({ reason })).toBe(expected);
});
