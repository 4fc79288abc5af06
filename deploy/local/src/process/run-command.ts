import { readFileSync } from "node:fs";
import { spawnTied, type TiedCommand } from "./tied-process.ts";

/** Exit code of a finished command (127: it could not be started) and its whole log file. */
export type Finished = { readonly code: number | null; readonly log: string };

/** Runs a command to its end, tied to this process, its output in `logPath`. Kills it at the deadline. */
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
