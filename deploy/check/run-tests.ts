import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countTests } from "./count-tests.ts";

// usage: node deploy/check/run-tests.ts PROJECT...
// Runs the named vitest projects in one run and writes the counts to .cache/test-results/summary.txt.
const results = join(".cache", "test-results");
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });

const report = join(results, "report.json");
const { status } = spawnSync(
  "vitest",
  [
    "run",
    ...process.argv.slice(2).map((project) => `--project=${project}`),
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
  ],
  { stdio: ["ignore", "inherit", "inherit"] },
);

const { passed, failed } = countTests(readReport(report), status);
const summary = `${passed} passed, ${failed} failed`;
writeFileSync(join(results, "summary.txt"), `${summary}\n`);
console.log(`\n${summary}`);
if (failed > 0) process.exitCode = 1;

function readReport(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
