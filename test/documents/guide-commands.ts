import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export const blocksOf = (page: string, heading: string, language = "sh"): string[] => {
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  const [, section = ""] = text.split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  const blocks = own.matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return Array.from(blocks).flatMap(([, given, block = ""]) => (given === language ? [block] : []));
};

export const runCommands = async (
  env: Readonly<Record<string, string>>,
  ...blocks: readonly string[]
): Promise<string> => {
  // The command is installed, and npx is slow to notice.
  const script = ["set -euo pipefail", 'npx() { "$@"; }', ...blocks].join("\n");
  const { stdout } = await promisify(execFile)("bash", ["-c", script], {
    cwd: ROOT,
    env: {
      ...env,
      PATH: `${join(ROOT, "node_modules/.bin")}:${process.env["PATH"]}`,
      NODE_COMPILE_CACHE: join(ROOT, ".cache/compile"),
    },
  });
  return stdout;
};
