import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";
import { describeTimes, type FileTime } from "./file-times.ts";

/**
 * Writes what each file of tests took to the file that TEST_TIMES names.
 *
 * @public loaded by vitest
 */
export default class TimeReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const path = process.env["TEST_TIMES"];
    if (path === undefined) return;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, describeTimes(modules.map(timeOf)));
  }
}

function timeOf(module: TestModule): FileTime {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } =
    module.diagnostic();
  const tests = [...module.children.allTests()].filter((test) => test.result().state !== "skipped");
  const inTests = tests.reduce((sum, test) => sum + (test.diagnostic()?.duration ?? 0), 0);
  const all = environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration;
  // Concurrent tests take less than their sum.
  const testsMs = Math.min(inTests, duration);
  return {
    project: module.project.name,
    file: relative(process.cwd(), module.moduleId),
    tests: tests.length,
    testsMs,
    startMs: all - testsMs,
  };
}
