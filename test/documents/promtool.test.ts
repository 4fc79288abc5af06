import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findGoProgram } from "../outside/go-program.ts";
import { isFullSize } from "../system/size.ts";
import { alertFiles, alertTestFiles } from "./watch-files.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** They take a minute to compute. */
const LONG = /\/(quiet|slo-days)\.yaml$/;

const promtool = findGoProgram("promtool");

if (promtool === undefined) {
  console.warn(
    "SKIPPED: no promtool, so the alert rules of the chart are not run. `make alerts` builds it (some minutes).",
  );
}

const run = (...words: string[]): { status: number | null; output: string } => {
  const { status, stdout, stderr } = spawnSync(promtool ?? "", words, { cwd: ROOT, encoding: "utf8" });
  return { status, output: stdout + stderr };
};

describe.skipIf(promtool === undefined)("promtool", () => {
  it("finds the rules right", () => {
    const { status, output } = run("check", "rules", "--lint=all", "--lint-fatal", ...alertFiles());
    expect(output).not.toMatch(/FAILED|error/i);
    expect(status, output).toBe(0);
  }, 60_000);

  it.each(alertTestFiles().filter((file) => isFullSize || !LONG.test(file)))("runs %s", (file) => {
    const { status, output } = run("test", "rules", file);
    expect(status, output).toBe(0);
  }, 300_000);
});
