import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { runCommand } from "@conversation-export/ops";

type Variables = Readonly<Record<string, string | undefined>>;

export type OpsEnding = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** It runs in this process. */
export type RunningOps = {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Closed ones included. */
  readonly sockets: readonly Socket[];
  /** Ctrl-C; not every command reacts. */
  interrupt(): void;
  readonly ended: Promise<OpsEnding>;
};

const socketsOfCommand = new AsyncLocalStorage<Socket[]>();
subscribe("net.client.socket", (message) => {
  socketsOfCommand.getStore()?.push((message as { readonly socket: Socket }).socket);
});

export const startOps = (env: Variables, ...args: string[]): RunningOps => {
  let [stdout, stderr] = ["", ""];
  const sockets: Socket[] = [];
  const interrupt = new AbortController();
  const deps = {
    env,
    print: (text: string) => void (stdout += `${text}\n`),
    say: (text: string) => void (stderr += `${text}\n`),
    terminal: null,
    screen: null,
    now: () => new Date(),
    catchInterrupt: () => ({ signal: interrupt.signal, release: () => undefined }),
  };
  const run = async (): Promise<OpsEnding> => ({ code: await runCommand(args, deps), stdout, stderr });
  return {
    stdout: () => stdout,
    stderr: () => stderr,
    sockets,
    interrupt: () => interrupt.abort(),
    ended: socketsOfCommand.run(sockets, run),
  };
};

export type Finding = {
  readonly area: string;
  readonly name: string;
  readonly state: string;
  readonly found: string;
  readonly advice: string;
};

/** Also when some are problems. */
export const findingsOfDoctor = async (env: Variables): Promise<Finding[]> =>
  JSON.parse((await startOps({ OPERATOR: "test", ...env }, "doctor", "--json").ended).stdout) as Finding[];

/** Rejects with its ending when it fails. */
export const ops = async (env: Variables, ...args: string[]): Promise<string> => {
  const ending = await startOps({ OPERATOR: "test", ...env }, ...args).ended;
  if (ending.code === 0) return ending.stdout;
  throw Object.assign(
    new Error(`export-ops ${args.join(" ")} ended with ${ending.code}: ${ending.stderr}`),
    ending,
  );
};
