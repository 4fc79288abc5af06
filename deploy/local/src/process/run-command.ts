import { readFileSync } from "node:fs";
import { spawnTied, type TiedCommand } from "./tied-process.ts";

/** 127: it could not be started. */
export type Finished = { readonly code: number | null; readonly log: string };

export function runCommand(tied: TiedCommand, deadlineMs: number): Promise<Finished> {
  return new Promise((resolve) => {
    const child = spawnTied(tied);
    const timer = setTimeout(() => child.kill("SIGKILL"), deadlineMs);
    const finish = (code: number | null): void => {
      clearTimeout(timer);
      resolve({ code, log: readFileSync(tied.logPath, "utf8") });
    };
    child.once("error", () => finish(127));
    child.once("exit", finish);
  });
}
