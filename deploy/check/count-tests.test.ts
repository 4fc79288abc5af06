import { expect, it } from "vitest";
import { countTests } from "./count-tests.ts";

const report = (passed: number, failed: number): string =>
  JSON.stringify({ numPassedTests: passed, numFailedTests: failed });

it("takes the counts of the report", () => {
  expect(countTests(report(5, 0), 0)).toEqual({ passed: 5, failed: 0 });
  expect(countTests(report(5, 2), 1)).toEqual({ passed: 5, failed: 2 });
});

it("never hides a run that failed without a failed test", () => {
  expect(countTests(report(5, 0), 1)).toEqual({ passed: 5, failed: 1 });
  expect(countTests(report(5, 0), null)).toEqual({ passed: 5, failed: 1 });
  expect(countTests(undefined, 0)).toEqual({ passed: 0, failed: 1 });
});
