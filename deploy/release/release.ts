import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildImage } from "../image/build-image.ts";
import { type Builder, findBuilder, probeBuilder } from "../image/builder.ts";
import { readBillOfMaterials, repeatable } from "./bill-of-materials.ts";
import { baseImageProblem, type LeftOut, releaseProblems, reportLeftOut } from "./release-state.ts";

// usage: [PARTIAL=1] node deploy/release/release.ts [sbom]; parts may be missing only with PARTIAL.
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CHART = join(ROOT, "deploy/charts/conversation-export");
const dist = join(ROOT, "dist");

const textOf = (file: string): string => readFileSync(file, "utf8");
const output = (command: string, args: readonly string[]): string =>
  execFileSync(command, args, { cwd: ROOT, encoding: "utf8" }).trim();
const works = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, args, { stdio: "ignore" }).status === 0;

const { name, version } = JSON.parse(textOf(join(ROOT, "package.json"))) as Record<
  "name" | "version",
  string
>;
const chartValue = (key: string): string =>
  new RegExp(`^${key}: "?([^"\\n]*)"?$`, "m").exec(textOf(join(CHART, "Chart.yaml")))?.[1] ?? "";

const leftOut: LeftOut[] = [];

const at = new Date(Number(output("git", ["log", "-1", "--format=%ct"])) * 1000).toISOString();
const revision = output("git", ["rev-parse", "HEAD"]);

const writeSbom = (): void => {
  const file = join(dist, `${name}-${version}.cdx.json`);
  writeFileSync(file, repeatable(readBillOfMaterials(), { name, at }));
  console.log(`wrote ${file}`);
};

const packChart = (): void => {
  if (!works("helm", ["version"])) {
    leftOut.push({ part: "the chart archive", reason: "there is no helm; `make chart` builds it" });
    return;
  }
  console.log(output("helm", ["package", CHART, "--destination", dist]));
};

const packClient = (): void => {
  execFileSync(process.execPath, [join(ROOT, "deploy/release/pack-client.ts"), dist], {
    cwd: ROOT,
    stdio: "inherit",
  });
};

const base =
  process.env["NODE_IMAGE"] ||
  (/^ARG NODE_IMAGE=(.*)$/m.exec(textOf(join(ROOT, "deploy/Dockerfile")))?.[1] ?? "");

const writeImage = (builder: Builder): void => {
  const file = join(dist, `${name}-${version}.image.tar`);
  const values = { NODE_IMAGE: base, VERSION: version, REVISION: revision, CREATED: at };
  buildImage(builder, { tag: `docker.io/library/${name}:${version}`, file, values });
};

const packImage = (): void => {
  const problem = baseImageProblem(base);
  if (problem !== null) {
    leftOut.push({ part: "the image", reason: problem });
    return;
  }
  let builder: Builder;
  try {
    builder = findBuilder(process.env["BUILDER"] || undefined, probeBuilder);
  } catch (error) {
    leftOut.push({ part: "the image", reason: error instanceof Error ? error.message : String(error) });
    return;
  }
  writeImage(builder);
};

const writeChecksums = (): void => {
  const lines = readdirSync(dist)
    .toSorted()
    .map(
      (file) =>
        `${createHash("sha256")
          .update(readFileSync(join(dist, file)))
          .digest("hex")}  ${file}\n`,
    );
  writeFileSync(join(dist, "SHA256SUMS"), lines.join(""));
  console.log(`\n${name} ${version}, ${revision}, in ${dist}:\n${lines.join("")}`);
};

const problems = releaseProblems({
  changes: output("git", ["status", "--porcelain"]),
  version,
  chart: { version: chartValue("version"), appVersion: chartValue("appVersion") },
  changelog: textOf(join(ROOT, "CHANGELOG.md")),
});

const isSbomOnly = process.argv[2] === "sbom";
if (!isSbomOnly && problems.length > 0) {
  for (const problem of problems) console.error(`not released: ${problem}`);
  process.exitCode = 1;
} else {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  writeSbom();
  if (!isSbomOnly) {
    packChart();
    packClient();
    packImage();
    writeChecksums();
    const { lines, exitCode } = reportLeftOut(leftOut, process.env["PARTIAL"] === "1");
    for (const line of lines) console.error(line);
    process.exitCode = exitCode;
  }
}
