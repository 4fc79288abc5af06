import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import { countTests, type TestCount } from "./count-tests.ts";

// usage: node deploy/check/run-tests.ts PROJECT...
// Runs the named vitest projects and writes the counts to .cache/test-results/summary.txt.
const results = join(".cache", "test-results");
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });

/** Lower than normal, high enough that tests get on beside busy processors. */
const LOW_PRIORITY = 10;

const projects = process.argv.slice(2);
const onServers = projects.filter((project) => project !== "unit");
// Tests on servers often wait: unit tests take the time that they leave.
const counts = await Promise.all(
  [
    { name: "servers", run: onServers, isBeside: false },
    { name: "unit", run: projects.filter((project) => project === "unit"), isBeside: onServers.length > 0 },
  ]
    .filter(({ run }) => run.length > 0)
    .map(runVitest),
);

const sum = (of: keyof TestCount): number => counts.reduce((total, count) => total + count[of], 0);
const summary = `${sum("passed")} passed, ${sum("failed")} failed`;
writeFileSync(join(results, "summary.txt"), `${summary}\n`);
console.log(`\n${summary}`);
if (sum("failed") > 0) process.exitCode = 1;

/** @param isBeside true: with low priority, and its output is shown at the end */
async function runVitest({
  name,
  run,
  isBeside,
}: {
  readonly name: string;
  readonly run: readonly string[];
  readonly isBeside: boolean;
}): Promise<TestCount> {
  const report = join(results, `${name}.json`);
  const log = join(results, `${name}.log`);
  const output = isBeside ? openSync(log, "w") : "inherit";
  const child = spawn(
    "vitest",
    [
      "run",
      ...run.map((project) => `--project=${project}`),
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
    ],
    { stdio: ["ignore", output, output] },
  );
  if (isBeside && child.pid !== undefined) setPriority(child.pid, LOW_PRIORITY);
  const [status] = (await once(child, "close")) as [number | null];
  if (isBeside) process.stdout.write(readFileSync(log));
  return countTests(readReport(report), status);
}

function readReport(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
