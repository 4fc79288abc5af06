import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const contentOf = (file: string): string => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
};

/** Installs once, below `.local`; returns the folder of programs. */
export const preparePythonTools = async (name: string): Promise<string> => {
  const requirements = join(ROOT, `deploy/check/python/${name}.txt`);
  const folder = join(ROOT, ".local", `${name}-tools`);
  const done = join(folder, "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (contentOf(done) !== wanted) {
    const run = promisify(execFile);
    console.log(`installing the ${name} tools into ${folder}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await run("python3", ["-m", "venv", join(folder, "venv")]);
    const pip = ["-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", requirements];
    await run(join(folder, "venv/bin/python"), pip);
    writeFileSync(done, wanted);
  }
  return join(folder, "venv/bin");
};
