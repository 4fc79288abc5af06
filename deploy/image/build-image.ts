import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Builder, type ImageTarget } from "./builder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** A larger image is a mistake in the Dockerfile. */
const LARGEST_BYTES = 300_000_000;

/** Returns the archive's bytes. */
export const buildImage = (builder: Builder, target: ImageTarget): number => {
  const run = (args: readonly string[]): void =>
    void execFileSync(builder.name, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  run(builder.build(target));
  mkdirSync(dirname(target.file), { recursive: true });
  // Builders do not overwrite archives.
  rmSync(target.file, { force: true });
  run(builder.save(target));
  const { size } = statSync(target.file);
  if (size > LARGEST_BYTES) throw new Error(`the image has ${size} bytes, more than ${LARGEST_BYTES}`);
  return size;
};
