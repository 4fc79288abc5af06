import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countTests } from "./count-tests.ts";

// usage: node deploy/check/run-tests.ts SUITE PROJECT... (vitest projects)
const [suite = "tests", ...projects] = process.argv.slice(2);
const results = join(".cache", "test-results");
mkdirSync(results, { recursive: true });
const [report, summaryFile, times] = [".json", ".txt", "-times.md"].map((end) =>
  join(results, suite + end),
) as [string, string, string];
for (const file of [report, summaryFile, times]) rmSync(file, { force: true });

const from = performance.now();
// The kernel kills vitest, and so its workers and servers, with this process.
const canTie = process.platform === "linux" && spawnSync("setpriv", ["--version"]).status === 0;
const command: [string, ...string[]] = canTie
  ? ["setpriv", "--pdeathsig", "KILL", "vitest", "run"]
  : ["vitest", "run"];
const [program, ...words] = command;
const { status, error } = spawnSync(
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

if (error !== undefined) console.error(`vitest did not start: ${error.message}`);
const counted = countTests(read(report), status);
// A renamed project would otherwise run no test unnoticed.
const idle = projects.filter((project) => !new RegExp(`^\\| ${project} \\|`, "m").test(read(times) ?? ""));
for (const project of idle) console.error(`no test of the project ${project} ran`);
const { passed } = counted;
const failed = counted.failed + idle.length;
const summary = `${passed} passed, ${failed} failed`;
const failures = counted.failures.map((line) => `failed: ${line}`);
writeFileSync(summaryFile, [summary, ...failures, ""].join("\n"));
console.log(`\n${read(times) ?? ""}`);
for (const line of failures) console.log(line);
console.log(`${suite}: ${summary} in ${((performance.now() - from) / 60_000).toFixed(1)} minutes`);
if (failed > 0) process.exitCode = 1;

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
