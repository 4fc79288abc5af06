import { Command } from "commander";
import { addAuditCommand } from "./audit/audit-command.ts";
import { addCampaignCommands } from "./access/campaign-commands.ts";
import { addClientCommands } from "./access/client-commands.ts";
import { addKeyCommands } from "./access/key-commands.ts";
import { addBackfillCommand } from "./commands/backfill-command.ts";
import type { CommandDeps } from "./commands/command-deps.ts";
import { addDeadLetterCommands } from "./commands/dead-letter-commands.ts";
import { addDoctorCommand } from "./commands/doctor-command.ts";
import { addEraseAgainCommand } from "./erasure/erase-again-command.ts";
import { addEraseCommand } from "./erasure/erase-command.ts";
import type { ExitCode } from "./explain/exit-code.ts";
import { addJobCommands } from "./commands/job-commands.ts";
import { addLagCommand } from "./commands/lag-command.ts";
import { addOffsetsCommands } from "./commands/offsets-commands.ts";
import { addSetupCommands } from "./commands/setup-commands.ts";
import { addStatusCommand } from "./commands/status-command.ts";
import { addUpkeepCommands } from "./commands/upkeep-commands.ts";
import { addWindowsCommand } from "./commands/windows-command.ts";

const HELP = `
Every command has --help with examples and --json for scripts. docs/configuration.md lists the variables under ops;
each command reads only those it needs.

Exit code: 0 done; 1 failed: refused, the job failed or was cancelled, or doctor found a problem;
           2 wrong usage: arguments, variables, or --yes is missing; 3 a server does not answer;
           4 the job ended, but its source did not hold all that it was asked for
           130 Ctrl-C while a job was followed; the job continues; 143 SIGTERM`;

/** Shows the help of a command. Unlike commander's own, it refuses an unknown command. */
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
 * Creates the commands of `export-ops`. Each reads only the variables that it needs.
 *
 * @throws CommanderError on parsing, for wrong usage; commands throw errors that `explain` explains.
 */
export const createProgram = (
  deps: CommandDeps & {
    /** For a command that prints its answer and ends with another code than 0. */
    readonly setExitCode: (code: ExitCode) => void;
  },
): Command => {
  const program = new Command("export-ops")
    .description("Operate the conversation export: tables, topics, clients, keys, campaigns and jobs.")
    .exitOverride()
    // Needed for those of `erase`, which has subcommands and options.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => deps.print(text.trimEnd()),
      writeErr: (text) => deps.say(text.trimEnd()),
    })
    .showHelpAfterError("(--help shows the usage)")
    .addHelpText("after", HELP);
  program.commandsGroup("Set up:");
  addSetupCommands(program, deps);
  program.commandsGroup("Access:");
  addClientCommands(program, deps);
  addKeyCommands(program, deps);
  addCampaignCommands(program, deps);
  program.commandsGroup("Watch:");
  addStatusCommand(program, deps, deps.setExitCode);
  addDoctorCommand(program, deps, deps.setExitCode);
  addLagCommand(program, deps);
  addWindowsCommand(program, deps);
  addAuditCommand(program, deps);
  addJobCommands(program, deps);
  program.commandsGroup("Maintain records:");
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
