import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const BESIDE = (user: string): string =>
  `CLICKHOUSE_${user}_URL: is required, or CLICKHOUSE_${user}_USER and CLICKHOUSE_${user}_PASSWORD in its place`;

const PROBLEMS = {
  ingest: ["KAFKA_BROKERS: is required", "CLICKHOUSE_URL: must be", "SUPPRESSION_SECRET: is required"],
  "export-api": [
    "CLICKHOUSE_URL: must be",
    BESIDE("LOOKUP"),
    BESIDE("INTAKE"),
    "REDIS_URL: is required",
    "KAFKA_BROKERS: is required",
    "CURSOR_SECRET: is required",
  ],
  jobs: [
    "REDIS_URL: is required",
    "CLICKHOUSE_URL: must be",
    "KAFKA_BROKERS: is required",
    "SUPPRESSION_SECRET: is required",
  ],
} as const;

it.each(
  Object.entries(PROBLEMS),
)("%s names what is missing and what is wrong on stderr, without its value or a stack, and exits 1", (service, problems) => {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, "services", service, "src/main.ts")],
    {
      env: { CLICKHOUSE_URL: "ftp://user:hunter2@127.0.0.1:1/export" },
      encoding: "utf8",
      timeout: 30_000,
    },
  );
  expect({ status, signal, stdout }).toEqual({ status: 1, signal: null, stdout: "" });
  const [heading, ...lines] = stderr.replace(/(CLICKHOUSE_URL: must be)[^\n]*/, "$1").split("\n");
  expect(heading).toBe("wrong configuration:");
  expect(lines).toEqual([...problems.map((problem) => `  ${problem}`), ""]);
  expect(stderr).not.toContain("hunter2");
});
