import { audited } from "../audit/audited.ts";
import { erasureJob } from "@conversation-export/queue";
import type { Command } from "commander";
import { instant } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { DETACH_FLAG, type DetachOption, startJob } from "../jobs/start-job.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";

/** After a restore. */
export const addEraseAgainCommand = (program: Command, deps: CommandDeps): void => {
  program
    .command("erase-again")
    .requiredOption("--since <instant>", "when the backup of the records began", instant(deps.now))
    .option("--dry-run", "only report what would be erased")
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
It finds everything that was suppressed since that instant or belongs to a request completed since: conversations and
messages by id, persons by the identifiers in stored records. Records created after the request are kept. An earlier
instant than necessary costs only time. Open requests are completed too. A dry run needs no --yes.

Examples:
  export-ops erase-again --since 2026-11-01T02:00:00Z --dry-run
  export-ops erase-again --since 2026-11-01T02:00:00Z --yes`,
    )
    .action(
      (
        options: { since: string; dryRun?: true } & YesOption & DetachOption & JsonOption,
        command: Command,
      ) => {
        const { since, dryRun = false } = options;
        if (!dryRun) requireYes(options, "this erases records for good; --dry-run shows how many");
        const data = { clientId: null, requestId: null, again: { since, dryRun } };
        return audited(command, deps, () => startJob(erasureJob, data, options, deps));
      },
    );
};
