import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestCount, countTests } from "./count-tests.ts";

// usage: node deploy/check/run-tests.ts PROJECT...
// Runs the named vitest projects one after another, all of them even when one fails, and leaves the sum in
// .cache/test-results/summary.txt.
const results = join(".cache", "test-results");
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });

let sum: TestCount = { passed: 0, failed: 0 };
for (const project of process.argv.slice(2)) {
  console.log(`\n== ${project} tests ==`);
  const file = join(results, `${project}.json`);
  const { status } = spawnSync(
    "vitest",
    ["run", "--project", project, "--reporter=default", "--reporter=json", `--outputFile.json=${file}`],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  const { passed, failed } = countTests(readReport(file), status);
  sum = { passed: sum.passed + passed, failed: sum.failed + failed };
}

const summary = `${sum.passed} passed, ${sum.failed} failed`;
writeFileSync(join(results, "summary.txt"), `${summary}\n`);
console.log(`\n${summary}`);
if (sum.failed > 0) process.exitCode = 1;

function readReport(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
