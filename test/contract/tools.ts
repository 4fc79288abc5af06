import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const REQUIREMENTS = join(ROOT, "deploy/check/contract-requirements.txt");
const FOLDER = join(ROOT, ".local", "contract-tools");
const DONE = join(FOLDER, "requirements.txt");

const installed = (): string => {
  try {
    return readFileSync(DONE, "utf8");
  } catch {
    return "";
  }
};

/** Installs what the requirements name, once, into a folder of its own; gives the path of schemathesis. */
export const prepareTools = async (): Promise<string> => {
  const wanted = readFileSync(REQUIREMENTS, "utf8");
  if (installed() !== wanted) {
    const run = promisify(execFile);
    console.log(`installing the contract tools into ${FOLDER}`);
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    await run("python3", ["-m", "venv", join(FOLDER, "venv")]);
    await run(join(FOLDER, "venv/bin/python"), [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--requirement",
      REQUIREMENTS,
    ]);
    writeFileSync(DONE, wanted);
  }
  return join(FOLDER, "venv/bin/schemathesis");
};
