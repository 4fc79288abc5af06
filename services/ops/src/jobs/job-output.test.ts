import { expect, test } from "vitest";
import { renderHeld } from "./job-output.ts";

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
