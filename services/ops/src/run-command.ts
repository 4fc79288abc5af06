import { inspect } from "node:util";
import { CommanderError } from "commander";
import type { CommandDeps } from "./commands/command-deps.ts";
import { EXIT, type ExitCode } from "./explain/exit-code.ts";
import { createProgram } from "./program.ts";

export const complaint = (text: string): string => `export-ops: ${text}`;

/** An abandoned connection attempt may go on for seconds. */
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
    // It loads slowly.
    const { exitCodeOf, explain } = await import("./explain/explain.ts");
    deps.say(complaint(explain(error) ?? inspect(error)));
    return exitCodeOf(error);
  }
};
