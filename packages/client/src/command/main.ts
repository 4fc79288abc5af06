#!/usr/bin/env node
import { constants } from "node:os";
import { EXIT, StoppedError } from "./exit-code.ts";
import { run } from "./program.ts";
import { useProxy } from "./proxy.ts";
import { say } from "./say.ts";

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

const start = async (): Promise<number> => {
  try {
    useProxy(process.env);
  } catch (error) {
    say(process.stderr, `http_proxy, https_proxy: ${error instanceof Error ? error.message : String(error)}`);
    return EXIT.usage;
  }
  const { env, stdout, stderr } = process;
  return run(process.argv.slice(2), { env, stdout, stderr, signal: stop.signal });
};

const code = await start();
process.exitCode = signalled === undefined ? code : 128 + constants.signals[signalled];
