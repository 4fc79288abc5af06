import { relative } from "node:path";

export interface TestCount {
  readonly passed: number;
  readonly failed: number;
  readonly failures: readonly string[];
}

type Report = {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
};

const EMPTY: Report = { numPassedTests: 0, numFailedTests: 0, testResults: [] };

const lineOf = (...parts: readonly (string | undefined)[]): string =>
  parts
    .map((part) => (part ?? "").trim().split("\n")[0])
    .filter(Boolean)
    .join(": ")
    .slice(0, 400);

/** A run that fails without a failed test counts as one failure; none means that vitest ended with 0. */
export function countTests(report: string | undefined, status: number | null): TestCount {
  const {
    numPassedTests: passed,
    numFailedTests,
    testResults,
  } = report === undefined ? EMPTY : (JSON.parse(report) as Report);
  const failures = testResults.flatMap(({ name, status: whole, message, assertionResults }) => {
    const file = relative(process.cwd(), name);
    const tests = assertionResults
      .filter((test) => test.status === "failed")
      .map(({ fullName, failureMessages }) => lineOf(file, fullName, failureMessages[0]));
    return tests.length === 0 && whole === "failed" ? [lineOf(file, message)] : tests;
  });
  const failed = status === 0 && report !== undefined ? numFailedTests : Math.max(numFailedTests, 1);
  return { passed, failed, failures };
}
