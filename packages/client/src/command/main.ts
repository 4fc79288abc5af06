#!/usr/bin/env node
import { constants } from "node:os";
import { StoppedError } from "./exit-code.ts";
import { run } from "./program.ts";

const stop = new AbortController();
let signalled: "SIGINT" | "SIGTERM" | undefined;
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => {
    signalled = name;
    stop.abort(new StoppedError(`stopped by ${name}`));
  });
}
// A reader of the pipe that ends early ends the command.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") stop.abort(error);
  else throw error;
});

const code = await run(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: stop.signal,
});
process.exitCode = signalled === undefined ? code : 128 + constants.signals[signalled];
