import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Enough to start each service, but for the servers behind the addresses. */
const COMPLETE = {
  ingest: {
    KAFKA_BROKERS: "127.0.0.1:1",
    CLICKHOUSE_URL: "http://writer:hunter2@127.0.0.1:1/export",
    REDIS_URL: "redis://127.0.0.1:1",
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
  },
  "export-api": {
    CLICKHOUSE_URL: "http://reader:hunter2@127.0.0.1:1/export",
    CLICKHOUSE_LOOKUP_URL: "http://lookup:hunter2@127.0.0.1:1/export",
    CLICKHOUSE_INTAKE_URL: "http://intake:hunter2@127.0.0.1:1/export",
    REDIS_URL: "redis://127.0.0.1:1",
    KAFKA_BROKERS: "127.0.0.1:1",
    CURSOR_SECRET: "0123456789abcdef0123456789abcdef",
  },
  jobs: {
    REDIS_URL: "redis://127.0.0.1:1",
    CLICKHOUSE_URL: "http://jobs:hunter2@127.0.0.1:1/export",
    KAFKA_BROKERS: "127.0.0.1:1",
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
  },
} as const;

const runMain = (service: string, env: Readonly<Record<string, string>>) => {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, "services", service, "src/main.ts")],
    { env: { PATH: process.env["PATH"], ...env }, encoding: "utf8", timeout: 30_000 },
  );
  return { status, signal, stdout, stderr };
};

const refused = (...problems: string[]) => ({
  status: 1,
  signal: null,
  stdout: "",
  stderr: `wrong configuration:\n${problems.map((problem) => `  ${problem}\n`).join("")}`,
});

describe.each(Object.entries(COMPLETE))("%s with a wrong environment", (service, complete) => {
  it("names what is missing on stderr, without a stack, and exits 1", () => {
    const missing = Object.keys(complete).map((name) => {
      const [user] = /^CLICKHOUSE_(?:LOOKUP|INTAKE)/.exec(name) ?? [];
      return user === undefined
        ? `${name}: is required`
        : `${name}: is required, or ${user}_USER and ${user}_PASSWORD in its place`;
    });
    expect(runMain(service, {})).toEqual(refused(...missing));
  });

  it("names a wrong variable, without its value", () => {
    const [name = "", value = ""] = Object.entries(complete).find(([name]) => name.endsWith("_URL")) ?? [];
    const result = runMain(service, { ...complete, [name]: value.replace(/^\w+:/, "ftp:") });
    expect(result).toMatchObject({ status: 1, stdout: "" });
    expect(result.stderr).toMatch(new RegExp(`^wrong configuration:\\n  ${name}: must be [^\\n]+\\n$`));
    expect(result.stderr).not.toContain("hunter2");
  });
});
