#!/usr/bin/env node
import { constants } from "node:os";
import { EXIT, StoppedError } from "./exit-code.ts";
import { run } from "./program.ts";
import { say } from "./say.ts";

const stop = new AbortController();
let signalled: "SIGINT" | "SIGTERM" | undefined;
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => {
    signalled = name;
    stop.abort(new StoppedError(`stopped by ${name}`));
  });
}
let code: number | undefined;
let lost: Error | undefined;
const end = (): void => {
  if (code === undefined) return;
  if (lost !== undefined && code === EXIT.ok) {
    say(process.stderr, `writing to standard output failed: ${lost.message}`);
    code = EXIT.failed;
  }
  process.exitCode = signalled === undefined ? code : 128 + constants.signals[signalled];
};
// Lost output ends the command; this error may come after `run` has returned.
process.stdout.on("error", (error) => {
  lost = error;
  stop.abort(error);
  end();
});
// Without stderr the exit code must still be right.
process.stderr.on("error", () => undefined);

const { env, stdout, stderr } = process;
code = await run(process.argv.slice(2), { env, stdout, stderr, signal: stop.signal });
end();
