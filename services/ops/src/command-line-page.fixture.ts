import type { Command } from "commander";
import { COMMAND_GROUPS } from "./command-groups.ts";
import { createTestDeps } from "./commands/command-deps.fixture.ts";
import { createProgram } from "./program.ts";

const helpTextOf = (command: Command): string => {
  let text = "";
  command.configureOutput({
    writeOut: (more) => {
      text += more;
    },
    getOutHelpWidth: () => 100,
  });
  command.outputHelp();
  return text.trim();
};

const blocksOf = (command: Command): string => {
  const [text = "", examples] = helpTextOf(command).split("\n\nExamples:\n");
  const commands = examples === undefined ? "" : `\n\n\`\`\`sh\n${examples.replace(/^ +/gm, "")}\n\`\`\``;
  return `\`\`\`text\n${text}\n\`\`\`${commands}`;
};

const withBelow = (command: Command, above = ""): { name: string; command: Command }[] => {
  const name = `${above}${command.name()}`;
  return [{ name, command }, ...command.commands.flatMap((one) => withBelow(one, `${name} `))];
};

const sectionOf = (command: Command): string =>
  withBelow(command)
    .map(({ name, command: one }) => `### ${name}\n\n${blocksOf(one)}`)
    .join("\n\n");

/** The expected text of docs/command-line.md. */
export const renderCommandLinePage = async (): Promise<string> => {
  const program = await createProgram({ ...createTestDeps().deps, setExitCode: () => undefined });
  const groups = Object.entries(COMMAND_GROUPS).map(([heading, sets]) => {
    const names = sets.flatMap(({ descriptions }) => Object.keys(descriptions));
    const sections = names.flatMap((name) =>
      program.commands.filter((one) => one.name() === name).map(sectionOf),
    );
    return `## ${heading.replace(":", "")}\n\n${sections.join("\n\n")}`;
  });
  return `# Command line

Made from \`--help\` by \`make generate\`. How to run \`export-ops\`: [without Kubernetes](installation.md#without-kubernetes),
[on Kubernetes](installation.md#operator-commands), [in containers](quick-start.md#in-containers).

${blocksOf(program)}

${groups.join("\n\n")}
`;
};
