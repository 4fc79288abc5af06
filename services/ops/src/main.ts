#!/usr/bin/env node
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { explain } from "./explain.ts";
import { createProgram } from "./program.ts";

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const complain = (text: string): void => void process.stderr.write(`export-ops: ${text}\n`);

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

try {
  await createProgram({ print, now: () => new Date() }).parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    complain(explain(error) ?? inspect(error));
    // What failed may have left an attempt to connect behind.
    process.exit(1);
  }
}
