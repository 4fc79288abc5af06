import { existsSync, globSync, rmSync } from "node:fs";
import { afterAll } from "vitest";
import { keepsLogs, logFolders } from "./log-folders.ts";

type Task = { readonly result?: { readonly state?: string }; readonly tasks?: readonly Task[] };

const hasFailed = ({ result, tasks = [] }: Task): boolean =>
  result?.state === "fail" || tasks.some(hasFailed);

const describe = (folder: string): string => {
  if (!existsSync(folder)) return "the logs were removed; KEEP=1 keeps them";
  const until = keepsLogs ? "" : ", until the next run (KEEP=1 keeps them)";
  // Kafka's data are files *.log too.
  const logs = globSync("**/*.log", { cwd: folder, exclude: ["**/data"] });
  return [`logs in ${folder}${until}:`, ...logs.toSorted()].join("\n  ");
};

// A set-up file of vitest runs before each file of tests, so this hook is the last of that file.
// Vitest takes no other name for what it passes first.
// oxlint-disable-next-line no-empty-pattern
afterAll(({}, file) => {
  const failed = hasFailed(file);
  for (const [folder, use] of logFolders) {
    if (failed) console.error(describe(folder));
    else if (keepsLogs && use === "own") rmSync(folder, { recursive: true, force: true });
  }
  logFolders.clear();
});
