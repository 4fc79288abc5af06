import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const MAIN = join(ROOT, "services/ops/src/main.ts");

/** Runs the operations command; rejects with its message when it fails. */
export const ops = async (env: Readonly<Record<string, string>>, ...args: string[]): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: join(ROOT, ".cache/compile"),
      OPERATOR: "test",
      ...env,
    },
  });
  return stdout;
};
