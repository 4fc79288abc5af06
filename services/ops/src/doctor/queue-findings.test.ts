import { describe, expect, it } from "vitest";
import { failedFinding, processFinding } from "./queue-findings.ts";

const gone = { name: "compact", reason: "warehouse_unavailable: ECONNREFUSED" } as const;
const wrong = { name: "backfill", reason: "backfill_window: nope is not a topic of ingest" } as const;

describe("failed jobs", () => {
  it("that may go on are to be tried again, others are not", () => {
    expect(failedFinding([])).toMatchObject({ state: "ok" });
    const [retry, remove, both] = [[gone, gone], [wrong], [gone, wrong]].map(failedFinding);
    expect(retry).toMatchObject({ state: "warning", found: "2 compact" });
    expect(retry?.advice).toContain("jobs retry ID");
    expect(retry?.advice).not.toContain("jobs remove");
    expect(remove?.advice).toContain("they would fail again: `export-ops jobs remove ID --yes`");
    expect(remove?.advice).not.toContain("jobs retry");
    expect(both).toMatchObject({ found: "1 compact, 1 backfill" });
    expect(both?.advice).toContain("jobs retry ID");
    expect(both?.advice).toContain("1 of them would fail again");
  });
});

it.each([
  [[0, 0], true, "problem", "none is connected"],
  [[0, 0], false, "warning", "none is connected"],
  [[2, 2, 1], true, "ok", "2 connected"],
  [[null, null], true, "skipped", "does not list its clients"],
] as const)("jobs processes %j, before: %j: %s, %s", (counts, hasRun, state, found) => {
  const finding = processFinding(counts, hasRun);
  expect(finding).toMatchObject({ state, found: expect.stringContaining(found) });
  expect(finding.advice === null).toBe(state === "ok");
});
