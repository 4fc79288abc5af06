import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./settings.ts";

const BLOCK = /^## See it\n[\s\S]*?^```sh\n([\s\S]*?)^```$/m;

/** In order; a pipe over several lines is one. */
export const firstCommands = (alert: string): string[] => {
  const page = readFileSync(join(ROOT, "docs/runbooks", `${alert}.md`), "utf8");
  const block = BLOCK.exec(page)?.[1];
  if (block === undefined) throw new Error(`the runbook of ${alert} has no commands under "See it"`);
  return block
    .replaceAll(/\\\n\s*/g, "")
    .trim()
    .split("\n");
};
