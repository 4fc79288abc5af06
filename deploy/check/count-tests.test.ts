import { join } from "node:path";
import { expect, it } from "vitest";
import { countTests } from "./count-tests.ts";

const report = (passed: number, failed: number, testResults: readonly object[] = []): string =>
  JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults });

it("takes the counts of the report", () => {
  expect(countTests(report(5, 0), 0)).toEqual({ passed: 5, failed: 0, failures: [] });
  expect(countTests(report(5, 2), 1)).toMatchObject({ passed: 5, failed: 2 });
});

it("never hides a run that failed without a failed test", () => {
  expect(countTests(report(5, 0), 1)).toMatchObject({ passed: 5, failed: 1 });
  expect(countTests(report(5, 0), null)).toMatchObject({ passed: 5, failed: 1 });
  expect(countTests(undefined, 0)).toMatchObject({ passed: 0, failed: 1 });
});

it("names each failed test, and each file that failed as a whole", () => {
  const name = join(process.cwd(), "test/e2e/walks.test.ts");
  const failed = { status: "failed", fullName: "walks end", failureMessages: ["Error: 2 s\n    at walk"] };
  const tests = { name, status: "failed", message: "", assertionResults: [failed, { status: "passed" }] };
  const whole = { name, status: "failed", message: "no server\nat start", assertionResults: [] };
  expect(countTests(report(1, 1, [tests, whole]), 1).failures).toEqual([
    "test/e2e/walks.test.ts: walks end: Error: 2 s",
    "test/e2e/walks.test.ts: no server",
  ]);
});
