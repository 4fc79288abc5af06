import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Builder, type ImageTarget } from "./builder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** What a node pulls and keeps: more than this is a mistake in the Dockerfile. */
const LARGEST_BYTES = 300_000_000;

/**
 * Builds the image and writes its archive; its size in bytes.
 *
 * @throws Error when a command of the builder fails, or the image is too large
 */
export const buildImage = (builder: Builder, target: ImageTarget): number => {
  const run = (args: readonly string[]): void =>
    void execFileSync(builder.name, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  run(builder.build(target));
  mkdirSync(dirname(target.file), { recursive: true });
  // Archives are not written over.
  rmSync(target.file, { force: true });
  run(builder.save(target));
  const { size } = statSync(target.file);
  if (size > LARGEST_BYTES) throw new Error(`the image has ${size} bytes, more than ${LARGEST_BYTES}`);
  return size;
};
