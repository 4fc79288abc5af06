#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { clearScreenDown, cursorTo } from "node:readline";
import { EXIT } from "./explain/exit-code.ts";

// Not in the temporary folder, where others could put code.
enableCompileCache(join(import.meta.dirname, "../../../.cache/compile"));
const { complaint, runCommand } = await import("./run-command.ts");
const { visibleLines } = await import("./output/visible-lines.ts");

const print = (text: string): void => void process.stdout.write(`${visibleLines(text)}\n`);
const say = (text: string): void => void process.stderr.write(`${visibleLines(text)}\n`);

process.removeAllListeners("warning");
process.on("warning", (warning) => say(complaint(String(warning))));

let lost: NodeJS.ErrnoException | undefined;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  lost ??= error;
  // Ends only what runs until Ctrl-C.
  process.emit("SIGINT");
});
// The exit code still reports the failure.
process.stderr.on("error", () => undefined);

// As a container's first process, Node would ignore it.
process.once("SIGTERM", () => {
  say(complaint("ended by SIGTERM"));
  process.exit(EXIT.terminated);
});

const clearScreen = (): void => {
  cursorTo(process.stdout, 0, 0);
  clearScreenDown(process.stdout);
};

const catchInterrupt = () => {
  const abort = new AbortController();
  const onInterrupt = (): void => abort.abort();
  // A second Ctrl-C ends the process.
  process.once("SIGINT", onInterrupt);
  return { signal: abort.signal, release: () => void process.off("SIGINT", onInterrupt) };
};

const code = await runCommand(process.argv.slice(2), {
  env: process.env,
  print,
  say,
  terminal: process.stderr.isTTY ? process.stderr : null,
  screen: process.stdout.isTTY ? { clear: clearScreen } : null,
  now: () => new Date(),
  catchInterrupt,
});
const end = (): never => {
  // As after `| head`; the interrupt is this process's own.
  if (lost?.code === "EPIPE") process.exit(code === EXIT.detached ? EXIT.done : code);
  if (lost === undefined) process.exit(code);
  say(complaint(`writing to standard output failed: ${lost.message}`));
  process.exit(code === EXIT.done ? EXIT.failed : code);
};
// Open connection attempts would keep the process alive. The write flushes the output.
process.stdout.write("", () => setImmediate(end));
