import { Command } from "commander";
import { addAccessCommands } from "./access-commands.ts";
import { addBackfillCommand } from "./backfill-command.ts";
import type { CommandDeps } from "./command-deps.ts";
import { addDeadLetterCommands } from "./dead-letter-commands.ts";
import { addDoctorCommand } from "./doctor-command.ts";
import { addEraseAgainCommand, addEraseCommand } from "./erase-command.ts";
import type { ExitCode } from "./exit-code.ts";
import { addJobCommands } from "./job-commands.ts";
import { addLagCommand } from "./lag-command.ts";
import { addOffsetsCommands } from "./offsets-commands.ts";
import { addSetupCommands } from "./setup-commands.ts";
import { addUpkeepCommands } from "./upkeep-commands.ts";
import { addWindowsCommand } from "./windows-command.ts";

const HELP = `
Every command has --help with examples and --json for scripts. What it takes from the environment stands in
docs/configuration.md under ops; each command reads only what it needs.

Exit code: 0 done; 1 failed: refused, the job failed or was cancelled, or doctor found a problem;
           2 wrong usage: arguments, variables, or --yes is missing; 3 a server does not answer;
           130 Ctrl-C while a job was followed, which goes on`;

/** commander's own prints all of the help for a word that is no command, and does not say so. */
const helpOf = (program: Command, words: readonly string[]): void => {
  let command = program;
  for (const word of words) {
    const found = command.commands.find((one) => one.name() === word);
    if (found === undefined) return command.error(`error: unknown command '${word}'`);
    command = found;
  }
  command.help();
};

/**
 * The commands of `export-ops`. Each reads only the variables that it needs. Parsing throws `CommanderError` for
 * wrong usage; the commands throw what `explain` explains.
 */
export const createProgram = (deps: CommandDeps & { readonly end: (code: ExitCode) => void }): Command => {
  const program = new Command("export-ops")
    .description("Operate the conversation export: tables, topics, clients, keys, campaigns and jobs.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => deps.print(text.trimEnd()),
      writeErr: (text) => deps.say(text.trimEnd()),
    })
    .showHelpAfterError("(--help shows what is possible)")
    .addHelpText("after", HELP);
  program.commandsGroup("Set up:");
  addSetupCommands(program, deps);
  program.commandsGroup("Access:");
  addAccessCommands(program, deps);
  program.commandsGroup("Watch:");
  addDoctorCommand(program, deps, deps.end);
  addLagCommand(program, deps);
  addWindowsCommand(program, deps);
  addJobCommands(program, deps);
  program.commandsGroup("Keep true and small:");
  addBackfillCommand(program, deps);
  addOffsetsCommands(program, deps);
  addDeadLetterCommands(program, deps);
  addEraseCommand(program, deps);
  addEraseAgainCommand(program, deps);
  addUpkeepCommands(program, deps);
  program
    .command("help")
    .helpGroup("Watch:")
    .description("show the help of a command")
    .argument("[command...]")
    .action((words: string[]) => helpOf(program, words));
  return program;
};
