export interface TestCount {
  readonly passed: number;
  readonly failed: number;
}

/**
 * Counts passed and failed tests from vitest's JSON report and exit status. A run that fails without a failed
 * test (no report, no test files, a file that cannot be loaded, an unhandled rejection) counts as one
 * failure. So no failures means that vitest ended with status 0.
 */
export function countTests(report: string | undefined, status: number | null): TestCount {
  const { numPassedTests: passed, numFailedTests: failed } = (
    report === undefined ? { numPassedTests: 0, numFailedTests: 0 } : JSON.parse(report)
  ) as { numPassedTests: number; numFailedTests: number };
  return { passed, failed: status === 0 && report !== undefined ? failed : Math.max(failed, 1) };
}
