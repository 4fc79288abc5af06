import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { baseImageProblem, releaseProblems, reportLeftOut } from "./release-state.ts";

const good = {
  changes: "",
  version: "1.2.0",
  chart: { version: "1.2.0", appVersion: "1.2.0" },
  changelog: "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-22\n",
};

it("accepts a clean tree whose versions agree", () => {
  expect(releaseProblems(good)).toEqual([]);
});

it.each([
  ["a changed file", { changes: " M README.md" }, "not committed"],
  ["another version of the chart", { chart: { version: "1.1.0", appVersion: "1.2.0" } }, "chart is 1.1.0"],
  ["another version in the chart", { chart: { version: "1.2.0", appVersion: "1.1.0" } }, "appVersion"],
  ["no entry in the changelog", { changelog: "## 1.2.01\n## 1x2x0\n" }, "CHANGELOG.md"],
])("refuses %s", (_, change, said) => {
  const problems = releaseProblems({ ...good, ...change });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(said);
});

it("fails when a part is left out, unless the release may be partial", () => {
  const image = { part: "the image", reason: "no builder" };
  const line = "left out: the image (no builder)";
  expect(reportLeftOut([], false)).toEqual({ lines: [], exitCode: 0 });
  expect(reportLeftOut([image], true)).toEqual({ lines: [line], exitCode: 0 });
  expect(reportLeftOut([image], false)).toMatchObject({ lines: [line, expect.any(String)], exitCode: 1 });
});

it("builds on no base image that is named by a tag alone, and says how to name it", () => {
  expect(baseImageProblem(`node:24-slim@sha256:${"0".repeat(64)}`)).toBeNull();
  for (const image of ["node:24-slim", "node:24-slim@sha256:0"]) {
    expect(baseImageProblem(image)).toContain(`the base image ${image} has no digest`);
    expect(baseImageProblem(image)).toContain("`docker buildx imagetools inspect node:24-slim` shows it");
    expect(baseImageProblem(image)).toContain("NODE_IMAGE=node:24-slim@sha256:…");
  }
});

it("checks every base of the image: there is one beside the empty one", () => {
  const dockerfile = readFileSync(new URL("../Dockerfile", import.meta.url), "utf8");
  const stages = [...dockerfile.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)];
  const named = new Set(stages.map(([, , name]) => name));
  const bases = stages.map(([, base = ""]) => base).filter((base) => !named.has(base) && base !== "scratch");
  expect(bases).toEqual([`\${NODE_IMAGE}`]);
  expect(dockerfile).not.toMatch(/--from=(?!build\b|runtime\b)/);
});
