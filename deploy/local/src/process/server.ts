import type { ChildProcess } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileSize, readFrom, tail } from "./log-tail.ts";
import { identify, readIdentity, waitForEnd } from "./process-identity.ts";
import { spawnTied, type TiedCommand } from "./tied-process.ts";

export type Ending = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** Of a server with a folder of its own. */
export type FolderDeps = {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly onUnexpectedEnd: (ending: Ending) => void;
};

export type ServerDeps = {
  readonly name: string;
  readonly tied: TiedCommand;
  /** The next start waits until this process has ended. */
  readonly identityPath: string;
  readonly pidPath?: string;
  readonly startDeadlineMs: number;
  readonly stopDeadlineMs: number;
  /** The log of this start. */
  readonly ready: (readLog: () => string) => Promise<boolean>;
  /** Default: SIGTERM. */
  readonly askToStop?: () => Promise<void>;
  /** Not called after `stop` or `kill`. */
  readonly onUnexpectedEnd?: (ending: Ending) => void;
};

export type Server = {
  readonly pid: number | undefined;
  readonly start: () => Promise<void>;
  /** SIGKILL after the deadline. */
  readonly stop: () => Promise<void>;
  readonly kill: () => Promise<void>;
};

type FolderServer = Omit<ServerDeps, "tied" | "identityPath" | "onUnexpectedEnd"> &
  Pick<TiedCommand, "command">;

/** Works in its folder, with its log and identity there. */
export function createFolderServer(deps: FolderDeps, { command, ...server }: FolderServer): Server {
  const { folder, env, onUnexpectedEnd } = deps;
  return createServer({
    ...server,
    tied: { command, cwd: folder, env, logPath: join(folder, "server.log") },
    identityPath: join(folder, "server.identity"),
    onUnexpectedEnd,
  });
}

const logLines = 25;

export function describeEnding(ending: Ending): string {
  return ending.signal ?? `exit code ${ending.code}`;
}

/** Still down; a failed start throws with the log's tail. */
export function createServer(deps: ServerDeps): Server {
  type Running = { child: ChildProcess; ended: Promise<Ending>; ending: Ending | undefined; asked: boolean };
  let running: Running | undefined;

  async function awaitPredecessor(): Promise<void> {
    const predecessor = readIdentity(deps.identityPath);
    if (!predecessor) return;
    if (!(await waitForEnd(predecessor, deps.stopDeadlineMs))) {
      process.kill(predecessor.pid, "SIGKILL");
      await waitForEnd(predecessor, deps.stopDeadlineMs);
    }
    rmSync(deps.identityPath, { force: true });
  }

  function spawnProcess(): Running {
    const child = spawnTied(deps.tied);
    const killAtExit = (): void => {
      child.kill("SIGKILL");
    };
    process.on("exit", killAtExit);
    const ended = new Promise<Ending>((resolve) => {
      child.once("error", () => resolve({ code: 127, signal: null }));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    const started: Running = { child, ended, ending: undefined, asked: false };
    void ended.then((ending) => {
      process.off("exit", killAtExit);
      started.ending = ending;
      rmSync(deps.identityPath, { force: true });
      if (deps.pidPath !== undefined) rmSync(deps.pidPath, { force: true });
      if (running === started) running = undefined;
      if (!started.asked) deps.onUnexpectedEnd?.(ending);
    });
    const identity = child.pid === undefined ? undefined : identify(child.pid);
    if (identity) writeFileSync(deps.identityPath, JSON.stringify(identity));
    if (deps.pidPath !== undefined) writeFileSync(deps.pidPath, `${child.pid}\n`);
    return started;
  }

  function failure(reason: string, logFrom: number): Error {
    const { logPath } = deps.tied;
    const lines = tail(logPath, logLines, logFrom).replaceAll(/^/gm, "  ");
    return new Error(`${deps.name} ${reason}. The end of its log, ${logPath}:\n${lines}`);
  }

  async function start(): Promise<void> {
    if (running) return;
    const { logPath } = deps.tied;
    mkdirSync(dirname(logPath), { recursive: true });
    mkdirSync(dirname(deps.identityPath), { recursive: true });
    await awaitPredecessor();
    const logFrom = fileSize(logPath);
    const started = spawnProcess();
    running = started;
    // The start itself reports an end before it is ready.
    started.asked = true;
    const end = Date.now() + deps.startDeadlineMs;
    for (;;) {
      const ready = await deps.ready(() => readFrom(logPath, logFrom)).catch(() => false);
      if (started.ending)
        throw failure(`ended before it was ready (${describeEnding(started.ending)})`, logFrom);
      if (ready) break;
      if (Date.now() > end) {
        const error = failure(`was not ready after ${deps.startDeadlineMs / 1000} s`, logFrom);
        await kill();
        throw error;
      }
      await Promise.race([sleep(50), started.ended]);
    }
    started.asked = false;
  }

  async function stop(): Promise<void> {
    const stopping = running;
    if (!stopping) return;
    stopping.asked = true;
    if (deps.askToStop) {
      await deps.askToStop().catch(() => stopping.child.kill("SIGTERM"));
    } else {
      stopping.child.kill("SIGTERM");
    }
    const timer = setTimeout(() => stopping.child.kill("SIGKILL"), deps.stopDeadlineMs);
    await stopping.ended;
    clearTimeout(timer);
  }

  async function kill(): Promise<void> {
    const killing = running;
    if (!killing) return;
    killing.asked = true;
    killing.child.kill("SIGKILL");
    await killing.ended;
  }

  return {
    get pid() {
      return running?.child.pid;
    },
    start,
    stop,
    kill,
  };
}
