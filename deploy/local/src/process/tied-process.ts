import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, closeSync, constants, openSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isMainThread } from "node:worker_threads";

/** A command that never outlives this process. Its output is appended to `logPath`. */
export type TiedCommand = {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logPath: string;
  /** File for stdout alone, emptied first; absent: stdout goes to `logPath`. */
  readonly outputPath?: string;
};

// The parent may die before the child asks for the signal, so the shell checks once that it still lives.
const bySignal = '[ "$PPID" -eq "$0" ] || exit 1; exec "$@"';

// A watcher waits for the end of the pipe that the parent holds; a line on the pipe means a normal end.
const byPipe = `
  exec 3<&0 </dev/null
  ( read -r line <&3 || kill -KILL $$ ) >/dev/null 2>&1 &
  exec 3<&-
  exec "$@"`;

/** The full path of a program on the PATH of `env`; undefined when there is none. */
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

/**
 * Starts a process in its own group (Ctrl-C does not reach it). It is killed however this process ends.
 * The pid is that of the program, not of a wrapper.
 */
export function spawnTied(tied: TiedCommand, tie?: "signal" | "pipe"): ChildProcess {
  const setpriv = findProgram("setpriv", process.env);
  // The kernel ties the child to the thread, not to the process, so a worker thread uses the pipe.
  const canSignal = process.platform === "linux" && isMainThread && setpriv !== undefined;
  const way = tie ?? (canSignal ? "signal" : "pipe");
  const log = openSync(tied.logPath, "a");
  const output = tied.outputPath === undefined ? log : openSync(tied.outputPath, "w", 0o600);
  try {
    if (way === "signal") {
      const wrapper = ["--pdeathsig", "KILL", "sh", "-c", bySignal, String(process.pid)];
      return spawn(setpriv ?? "setpriv", [...wrapper, ...tied.command], {
        cwd: tied.cwd,
        env: tied.env,
        detached: true,
        stdio: ["ignore", output, log],
      });
    }
    const child = spawn("sh", ["-c", byPipe, "sh", ...tied.command], {
      cwd: tied.cwd,
      env: tied.env,
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
