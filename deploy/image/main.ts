import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildImage } from "./build-image.ts";
import { findBuilder, probeBuilder } from "./builder.ts";

// usage: BUILDER=podman IMAGE=name:tag IMAGE_OPTIONS="--network host" node deploy/image/main.ts
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const { name, version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Record<
  "name" | "version",
  string
>;
const { env } = process;

/** A source archive has no git. */
const readRevision = (): string => {
  try {
    return execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return "unknown";
  }
};

try {
  const builder = findBuilder(env["BUILDER"] || undefined, probeBuilder);
  // podman and buildah prefix short names.
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
