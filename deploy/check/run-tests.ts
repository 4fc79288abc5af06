import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countTests } from "./count-tests.ts";

// usage: node deploy/check/run-tests.ts SUITE PROJECT...
// Runs the named vitest projects in one run. Writes the counts to .cache/test-results/SUITE.txt and what each file
// took to .cache/test-results/SUITE-times.md.
const [suite = "tests", ...projects] = process.argv.slice(2);
const results = join(".cache", "test-results");
mkdirSync(results, { recursive: true });
const [report, summaryFile, times] = [".json", ".txt", "-times.md"].map((end) =>
  join(results, suite + end),
) as [string, string, string];
for (const file of [report, summaryFile, times]) rmSync(file, { force: true });

const from = performance.now();
// On Linux the kernel ends vitest with this process, however that ends; its workers and their servers follow it.
const tie = process.platform === "linux" ? ["setpriv", "--pdeathsig", "KILL"] : [];
const [program, ...words] = [...tie, "vitest", "run"] as [string, ...string[]];
const { status } = spawnSync(
  program,
  [
    ...words,
    ...projects.map((project) => `--project=${project}`),
    "--reporter=default",
    "--reporter=json",
    `--reporter=${join(import.meta.dirname, "time-reporter.ts")}`,
    `--outputFile.json=${report}`,
  ],
  { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, TEST_TIMES: times } },
);

const { passed, failed } = countTests(read(report), status);
const summary = `${passed} passed, ${failed} failed`;
writeFileSync(summaryFile, `${summary}\n`);
console.log(`\n${read(times) ?? ""}`);
console.log(`${suite}: ${summary} in ${((performance.now() - from) / 60_000).toFixed(1)} minutes`);
if (failed > 0) process.exitCode = 1;

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
