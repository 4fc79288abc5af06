import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, closeSync, constants, openSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isMainThread } from "node:worker_threads";

export type TiedCommand = {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logPath: string;
  /** Default: `logPath`. */
  readonly outputPath?: string;
};

// The parent may die before the child asks for the signal.
const bySignal = '[ "$PPID" -eq "$0" ] || exit 1; exec "$@"';

// A line on the parent's pipe means a normal end, its end a death.
const byPipe = `
  exec 3<&0 </dev/null
  ( read -r line <&3 || kill -KILL $$ ) >/dev/null 2>&1 &
  exec 3<&-
  exec "$@"`;

export function findProgram(name: string, env: NodeJS.ProcessEnv): string | undefined {
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/** The kernel ties a child to its parent's thread, not process: a worker thread cannot use it. */
const canTieBySignal = (): string | undefined =>
  process.platform === "linux" && isMainThread ? findProgram("setpriv", process.env) : undefined;

/** Unchanged without setpriv; `spawnTied` ties everywhere. */
export function tied(command: readonly [string, ...string[]]): [string, ...string[]] {
  const setpriv = canTieBySignal();
  if (setpriv === undefined) return [...command];
  return [setpriv, "--pdeathsig", "KILL", "sh", "-c", bySignal, String(process.pid), ...command];
}

/** Out of reach of Ctrl-C; the pid is the program's own. */
export function spawnTied(given: TiedCommand, tie?: "signal" | "pipe"): ChildProcess {
  const way = tie ?? (canTieBySignal() === undefined ? "pipe" : "signal");
  const log = openSync(given.logPath, "a");
  const output = given.outputPath === undefined ? log : openSync(given.outputPath, "w", 0o600);
  try {
    if (way === "signal") {
      const [program, ...words] = tied(given.command);
      return spawn(program, words, {
        cwd: given.cwd,
        env: given.env,
        detached: true,
        stdio: ["ignore", output, log],
      });
    }
    const child = spawn("sh", ["-c", byPipe, "sh", ...given.command], {
      cwd: given.cwd,
      env: given.env,
      detached: true,
      stdio: ["pipe", output, log],
    });
    child.stdin?.on("error", () => undefined);
    child.once("exit", () => child.stdin?.end("\n"));
    return child;
  } finally {
    closeSync(log);
    if (output !== log) closeSync(output);
  }
}
