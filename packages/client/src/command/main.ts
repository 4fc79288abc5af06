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
/** The exit code of the command, and what went wrong with its output. */
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
// Output that nobody gets ends the command; the error may come when it has ended.
process.stdout.on("error", (error) => {
  lost = error;
  stop.abort(error);
  end();
});
// Where progress and errors cannot be reported the exit code still can.
process.stderr.on("error", () => undefined);

const { env, stdout, stderr } = process;
code = await run(process.argv.slice(2), { env, stdout, stderr, signal: stop.signal });
end();
