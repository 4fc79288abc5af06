import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildImage } from "./build-image.ts";
import { findBuilder, probeBuilder } from "./builder.ts";

// Builds the image of this tree with the builder that is there, and writes it as an archive.
//   BUILDER=podman            the builder
//   IMAGE=registry/name:tag   what it is called
//   IMAGE_OPTIONS="--network host"   more options of the builder, split at blanks
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const { name, version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<
  "name" | "version",
  string
>;
const { env } = process;

/** An archive of the sources has none. */
const readRevision = (): string => {
  try {
    return execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return "unknown";
  }
};

try {
  const builder = findBuilder(env["BUILDER"] || undefined, probeBuilder);
  // With its registry, since podman and buildah put their own in front of a short name.
  const tag = env["IMAGE"] || `docker.io/library/${name}:${version}`;
  const file = join(ROOT, ".local/image", `${name}-${version}.tar`);
  const from = performance.now();
  const size = buildImage(builder, {
    tag,
    file,
    values: { VERSION: version, REVISION: readRevision() },
    options: (env["IMAGE_OPTIONS"] ?? "").split(/\s+/).filter((word) => word !== ""),
  });
  const seconds = Math.round((performance.now() - from) / 1000);
  console.log(`${tag} by ${builder.name} in ${seconds} s: ${Math.round(size / 1e6)} MB in ${file}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
