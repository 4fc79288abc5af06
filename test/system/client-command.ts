import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { tied } from "@conversation-export/local-stack";

const COMMAND = fileURLToPath(new URL("../../packages/client/src/command/main.ts", import.meta.url));
const COMPILE_CACHE = fileURLToPath(new URL("../../.cache/compile", import.meta.url));

/** `code`: null when it was killed. */
export type Ended = { readonly code: number | null; readonly out: string; readonly err: string };

const running = new Set<ChildProcess>();

/** The command of the client, as a process. */
export const startClientCommand = (
  { key, apiUrl }: { readonly key: string; readonly apiUrl: string },
  args: readonly string[],
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } => {
  const [program, ...words] = tied([process.execPath, COMMAND, ...args]);
  const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILE_CACHE };
  const child = spawn(program, words, {
    env: { ...env, EXPORT_API_KEY: key, EXPORT_API_URL: apiUrl },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const ended = once(child, "close").then(([code]: (number | null)[]) => {
    running.delete(child);
    return { code: code ?? null, out, err };
  });
  return { child, ended };
};

export const killClientCommands = (): void => {
  for (const child of running) child.kill("SIGKILL");
};
