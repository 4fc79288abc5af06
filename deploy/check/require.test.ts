import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";

const script = join(import.meta.dirname, "require.sh");
const ROOT = join(import.meta.dirname, "../..");

const requireOn = (platform: string, ...wanted: string[]) => {
  const folder = mkdtempSync(join(tmpdir(), "require-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const uname = join(folder, "uname");
  writeFileSync(uname, `#!/bin/sh\necho "${platform}"\n`);
  chmodSync(uname, 0o755);
  const env = { PATH: `${folder}:${process.env["PATH"]}` };
  return spawnSync("sh", [script, ...wanted], { env, encoding: "utf8" });
};

it.each(["Darwin arm64", "Linux aarch64"])("names the containers on %s, in one line", (platform) => {
  const { status, stderr } = requireOn(platform, "linux-x64", "no-such-program");
  expect(status).toBe(1);
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expect(stderr).toContain(platform);
  const [command = ""] = /docker compose [^']+/.exec(stderr) ?? [];
  expect(readFileSync(join(ROOT, "docs/quick-start.md"), "utf8")).toContain(`\n${command}\n`);
});

it("goes on to the programs on Linux x64", () => {
  expect(requireOn("Linux x86_64", "linux-x64").status).toBe(0);
  const { status, stderr } = requireOn("Linux x86_64", "linux-x64", "no-such-program");
  expect([status, stderr]).toEqual([1, "no-such-program is missing\n"]);
});

it("is asked by every target of make that starts servers", () => {
  const makefile = readFileSync(join(ROOT, "Makefile"), "utf8");
  expect(makefile).toMatch(/^tools:\n\t@sh deploy\/check\/require\.sh linux-x64 /m);
  for (const target of ["test", "it", "e2e", "faults", "test-cluster", "contract", "bench", "up", "demo"])
    expect(makefile, target).toMatch(new RegExp(`^${target}: tools `, "m"));
});
