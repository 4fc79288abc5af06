#!/usr/bin/env node
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { exitCodeOf, explain } from "./explain.ts";
import { EXIT } from "./exit-code.ts";
import { createProgram } from "./program.ts";

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const say = (text: string): void => void process.stderr.write(`${text}\n`);
const complain = (text: string): void => say(`export-ops: ${text}`);

// kafkajs sets a negative timer for each connection, and Node would say so between our lines.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (warning.name !== "TimeoutNegativeWarning") complain(String(warning));
});

// Whoever reads may stop reading, as `| head` does.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

const catchInterrupt = () => {
  const abort = new AbortController();
  const onInterrupt = (): void => abort.abort();
  // Once: a second Ctrl-C ends the process as ever.
  process.once("SIGINT", onInterrupt);
  return { signal: abort.signal, release: () => void process.off("SIGINT", onInterrupt) };
};

try {
  await createProgram({
    print,
    say,
    terminal: process.stderr.isTTY ? process.stderr : null,
    now: () => new Date(),
    catchInterrupt,
    // What a server that is away has left behind would keep the process; first what was printed must be out.
    end: (code) => void process.stdout.write("", () => process.exit(code)),
  }).parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
  } else {
    complain(explain(error) ?? inspect(error));
    // What failed may have left an attempt to connect behind.
    process.exit(exitCodeOf(error));
  }
}
