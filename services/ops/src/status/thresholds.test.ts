import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { JOB_NAMES } from "@conversation-export/queue";
import { describe, expect, it } from "vitest";
import { patienceOf, THRESHOLDS } from "./thresholds.ts";

const FOLDER = join(import.meta.dirname, "../../../../deploy/charts/conversation-export/files/alerts");
const rules = globSync("*.yaml", { cwd: FOLDER })
  .map((file) => readFileSync(join(FOLDER, file), "utf8"))
  .join("\n");

const expressionOf = (alert: string): string =>
  [...rules.matchAll(/^ +- alert: (\w+)\n +expr: \|\n([\s\S]*?)^ +for:/gm)]
    .flatMap(([, name, expr = ""]) => (name === alert ? [expr] : []))
    .join("\n");

const boundsOf = (alert: string): number[] =>
  [...expressionOf(alert).matchAll(/(?:[<>]|==) (\d+)\b/g)].map(([, bound]) => Number(bound));

const patienceIn = (alert: string): Map<string, number> =>
  new Map(
    [...expressionOf(alert).matchAll(/queue=~"([\w|]+)"\}\) > (\d+)/g)].flatMap(([, names = "", bound]) =>
      names.split("|").map((name): [string, number] => [name, Number(bound)]),
    ),
  );

describe("the thresholds of status are those of the alerts", () => {
  it.each([
    ["WatermarkOld", [THRESHOLDS.watermarkSeconds]],
    ["UploadWindowsOverdue", [THRESHOLDS.openWindows, THRESHOLDS.closedWindows]],
    ["ErasureSlow", [THRESHOLDS.erasureSeconds]],
    ["DeadLetters", [0]],
    ["JobFailed", [0]],
    ["ErasureOverdue", [0]],
    ["ErasureAwaitsApproval", [0]],
    ["BusRecordsLost", [0]],
    ["ScheduleHeld", [1]],
  ])("%s", (alert, bounds) => {
    expect(boundsOf(alert)).toEqual(bounds);
  });

  it("IngestLag, whose other number is one of pace", () => {
    expect(boundsOf("IngestLag")).toContain(THRESHOLDS.lagRecords);
  });

  it.each(["DeadLetters", "JobFailed"])("%s looks back as far", (alert) => {
    expect(expressionOf(alert)).toContain("[1h");
    expect(THRESHOLDS.recentMs).toBe(3_600_000);
  });

  it("JobQueueOld and ScheduleStalled, for each queue", () => {
    const waiting = patienceIn("JobQueueOld");
    expect([...waiting.keys()].sort()).toEqual([...JOB_NAMES].sort());
    for (const name of JOB_NAMES)
      expect({ name, s: patienceOf(name) }).toEqual({ name, s: waiting.get(name) });
    const scheduled = patienceIn("ScheduleStalled");
    expect(scheduled.size).toBeGreaterThan(3);
    for (const name of JOB_NAMES) if (scheduled.has(name)) expect(patienceOf(name)).toBe(scheduled.get(name));
  });
});
