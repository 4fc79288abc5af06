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

/** What went wrong with the output. */
let lost: NodeJS.ErrnoException | undefined;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  lost ??= error;
  // Ends what goes on until Ctrl-C; what changes something goes on to its end, and its note in the audit.
  process.emit("SIGINT");
});
// Without output the exit code still reports the failure.
process.stderr.on("error", () => undefined);

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
const end = (): never => {
  // The reader may close the pipe, as `| head` does.
  if (lost?.code === "EPIPE") process.exit(EXIT.done);
  if (lost === undefined) process.exit(code);
  say(complaint(`writing to standard output failed: ${lost.message}`));
  process.exit(code === EXIT.done ? EXIT.failed : code);
};
// Open attempts to connect would keep the process alive. The empty write flushes the output; its errors are reported next.
process.stdout.write("", () => setImmediate(end));
