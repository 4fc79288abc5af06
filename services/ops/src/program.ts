import { Command } from "commander";
import { COMMAND_GROUPS, type CommandSet } from "./command-groups.ts";
import type { ProgramDeps } from "./commands/command-deps.ts";

const HELP = `
Every command has --help with examples and --json for scripts. docs/configuration.md lists the variables under ops;
each command reads only those it needs. A command that changes something needs OPERATOR, the name for the audit.

Times: a day (2026-11-01), an instant (2026-11-01T06:00:00Z; UTC without an offset), or how long ago (90m, 6h, 3d).

Jobs: a command that starts a job shows its progress on standard error until it ends; --detach does not wait. Ctrl-C
does not stop the job. While Redis is away the command waits for a minute; the job continues when Redis is back.

Output: standard output holds only the result, standard error warnings, hints and errors as text, also with --json.
After an error standard output is empty, except for the report of a failed job with --json and the findings of doctor.

Exit code: 0 done; 1 failed: refused, the job failed or was cancelled, or doctor found a problem;
           2 wrong usage: arguments, variables, or --yes is missing; 3 a server does not answer;
           4 the job ended, but its source did not hold all that it was asked for
           130 Ctrl-C while a job was followed; the job continues; 143 SIGTERM`;

/** Commander's own accepts unknown commands. */
const helpOf = (program: Command, words: readonly string[]): void => {
  let command = program;
  for (const word of words) {
    const found = command.commands.find((one) => one.name() === word);
    if (found === undefined) return command.error(`error: unknown command '${word}'`);
    command = found;
  }
  command.help();
};

const isOf = ({ descriptions }: CommandSet, word: string | undefined): boolean =>
  word !== undefined && Object.hasOwn(descriptions, word);

/** Also behind `help`. */
const wantedOf = (words: readonly string[]): string | undefined => {
  const [first, second] = words.filter((word) => !word.startsWith("-"));
  return first === "help" ? second : first;
};

/** The commands of the wanted one's file; of other files only the names. */
const addCommands = async (
  program: Command,
  deps: ProgramDeps,
  isWanted: (set: CommandSet) => boolean,
): Promise<void> => {
  for (const [heading, sets] of Object.entries(COMMAND_GROUPS)) {
    for (const set of sets) {
      const names = Object.keys(set.descriptions);
      if (isWanted(set)) (await set.load())(program, deps);
      else for (const name of names) program.command(name);
      for (const command of program.commands.filter((one) => names.includes(one.name())))
        command.description(set.descriptions[command.name()] ?? "").helpGroup(heading);
    }
  }
};

/**
 * Each reads only its own variables; with `words` only that command can run.
 * @throws CommanderError for wrong usage
 */
export const createProgram = async (deps: ProgramDeps, words?: readonly string[]): Promise<Command> => {
  const program = new Command("export-ops")
    .description("Operate the conversation export: tables, topics, clients, keys, campaigns and jobs.")
    .exitOverride()
    // For `erase`, which has subcommands and options.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => deps.print(text.trimEnd()),
      writeErr: (text) => deps.say(text.trimEnd()),
    })
    .showHelpAfterError("(--help shows the usage)")
    .addHelpText("after", HELP);
  const wanted = words === undefined ? undefined : wantedOf(words);
  await addCommands(program, deps, (set) => words === undefined || isOf(set, wanted));
  program
    .command("help")
    .helpGroup("Watch:")
    .description("show the help of a command")
    .argument("[command...]")
    .action((given: string[]) => helpOf(program, given));
  // Commands not loaded have neither options nor arguments.
  return program.configureHelp({ subcommandTerm: (command) => command.name() });
};
