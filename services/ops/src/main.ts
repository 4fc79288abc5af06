#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { clearScreenDown, cursorTo } from "node:readline";
import { EXIT } from "./explain/exit-code.ts";

// In the folder of the project, not in that for temporary files, where others could put code. An image has its own.
enableCompileCache(join(import.meta.dirname, "../../../.cache/compile"));
const { complaint, runCommand } = await import("./run-command.ts");
const { visibleLines } = await import("./output/visible-lines.ts");

const print = (text: string): void => void process.stdout.write(`${visibleLines(text)}\n`);
const say = (text: string): void => void process.stderr.write(`${visibleLines(text)}\n`);

// One line in the form of the command's other messages.
process.removeAllListeners("warning");
process.on("warning", (warning) => say(complaint(String(warning))));

// The reader may close the pipe, as `| head` does.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT.done);
  throw error;
});

// The first process of a container ignores a signal that it does not handle, and would leave no word in the log.
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
  // Once: a second Ctrl-C ends the process.
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
// Open attempts to connect would keep the process alive; the empty write flushes the output first.
process.stdout.write("", () => process.exit(code));
