import { inspect } from "node:util";
import { CommanderError } from "commander";
import type { CommandDeps } from "./commands/command-deps.ts";
import { EXIT, type ExitCode } from "./explain/exit-code.ts";
import { createProgram } from "./program.ts";

/** A message as `export-ops` writes it to standard error. */
export const complaint = (text: string): string => `export-ops: ${text}`;

/**
 * Runs the command that the words name, and resolves to its exit code. Errors are messages on standard error.
 * An attempt to connect that was given up may go on for some seconds after this.
 */
export const runCommand = async (words: readonly string[], deps: CommandDeps): Promise<ExitCode> => {
  let code: ExitCode = EXIT.done;
  const setExitCode = (given: ExitCode): void => {
    code = given;
  };
  try {
    const program = await createProgram({ ...deps, setExitCode }, words);
    await program.parseAsync(words, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    // It knows the errors of all servers, so it takes longer to load than a command without an error does.
    const { exitCodeOf, explain } = await import("./explain/explain.ts");
    deps.say(complaint(explain(error) ?? inspect(error)));
    return exitCodeOf(error);
  }
};
