import { expect, it } from "vitest";
import { describeTimes } from "./file-times.ts";

const file = (project: string, name: string, startMs: number, testsMs: number) => ({
  project,
  file: name,
  tests: 2,
  startMs,
  testsMs,
});

it("sums up projects and ranks files by all that they took", () => {
  const text = describeTimes([
    file("unit", "a.test.ts", 100, 200),
    file("e2e", "b.test.ts", 60_000, 500),
    file("e2e", "c.test.ts", 1_000, 70_000),
  ]);
  expect(text.split("\n").filter((line) => !line.includes("---"))).toEqual([
    "| project | files | tests | seconds | of these start-up |",
    "| unit | 1 | 2 | 0.3 | 0.1 |",
    "| e2e | 2 | 4 | 131.5 | 61.0 |",
    "",
    "| dearest 3 files | tests | seconds | of these start-up |",
    "| c.test.ts | 2 | 71.0 | 1.0 |",
    "| b.test.ts | 2 | 60.5 | 60.0 |",
    "| a.test.ts | 2 | 0.3 | 0.1 |",
    "",
  ]);
});
