import { compactJob, reconcileJob, type ReconcileResult, retentionJob } from "@conversation-export/queue";
import type { Command } from "commander";
import { clientId, instant } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { requireYes, YES_FLAG, type YesOption } from "./confirm.ts";
import { warnUnlessRegistered } from "./registered-client.ts";
import { DETACH_FLAG, type DetachOption, startJob } from "./start-job.ts";

type Span = { readonly since?: string; readonly until?: string };

const HOUR_MS = 3_600_000;
const toHour = (ms: number): string => new Date(ms).toISOString().replace(/:\d\d\.\d+Z$/, "Z");

/** Why a comparison that goes on where the last one ended had nothing to do. */
export const nothingCompared = ({ from, to }: Pick<ReconcileResult, "from" | "to">): string | null => {
  const end = Date.parse(to);
  if (Date.parse(from) < end) return null;
  return `no hour was compared: all up to ${toHour(end)} were before, and the next hour is over at ${toHour(end + HOUR_MS)}; --since and --until compare hours again`;
};

/** The jobs that keep the warehouse small and true; the schedules start them too. */
export const addUpkeepCommands = (program: Command, deps: CommandDeps): void => {
  const at = instant(deps.now);
  const wrongSpan = ({ since, until }: Span): boolean =>
    since !== undefined && until !== undefined && since >= until;
  const SPAN_ERROR = "error: --since must be earlier than --until";

  program
    .command("compact")
    .description("merge what closed upload windows have written, and drop what is superseded")
    .option("--since <instant>", "windows that lie at or after it (default: all that are due)", at)
    .option("--until <instant>", "windows that end at or before it", at)
    .option("--force", "also windows that were compacted, and merges that hardly pay")
    .option("--dry-run", "only report what would be done")
    .option(...DETACH_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Readers see no difference: keys and records are compared before and after. Windows that are still open are left alone.

Examples:
  export-ops compact --dry-run
  export-ops compact --since 2026-11-01 --until 2026-11-02
  export-ops compact --since 7d --force --detach`,
    )
    .action(
      (options: Span & { force?: true; dryRun?: true } & DetachOption & JsonOption, command: Command) => {
        if (wrongSpan(options)) return command.error(SPAN_ERROR);
        const { since, until, force = false, dryRun = false } = options;
        const range =
          since === undefined && until === undefined
            ? null
            : { from: since ?? "1970-01-01T00:00:00Z", to: until ?? "2106-01-01T00:00:00Z" };
        return startJob(compactJob, { range, force, dryRun }, options, deps);
      },
    );

  program
    .command("reconcile")
    .description("compare what the bus carried with what is readable; fails when records are missing")
    .option("--client <id>", "of one client only", clientId)
    .option("--since <instant>", "from this hour of arrival on (default: as below)", at)
    .option("--until <instant>", "up to this hour (default: the last one that is over)", at)
    .option(...DETACH_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
It reads whole hours that ingest has stored, as far back as Kafka keeps its topics. Without --client, --since and
--until it goes on where the last such run ended, one by the clock or one of this command, and compares nothing when no
hour is over since. With one of them, but without --since, it compares one hour: that before --until, or the last one
that is over.

Examples:
  export-ops reconcile
  export-ops reconcile --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z --client acme --json`,
    )
    .action(async (options: Span & { client?: string } & DetachOption & JsonOption, command: Command) => {
      if (wrongSpan(options)) return command.error(SPAN_ERROR);
      const data = {
        from: options.since ?? null,
        to: options.until ?? null,
        clientId: options.client ?? null,
      };
      await warnUnlessRegistered(options.client, deps);
      return startJob(reconcileJob, data, options, deps, nothingCompared);
    });

  program
    .command("retention")
    .description("delete the records that are older than their client wants to keep")
    .option("--client <id>", "of one client only", clientId)
    .option("--dry-run", "only report what would be deleted")
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Clients keep everything until \`export-ops clients set ID --retention-days DAYS\` says otherwise. A dry run needs no
--yes.

Examples:
  export-ops retention --dry-run
  export-ops retention --client acme --yes`,
    )
    .action((options: { client?: string; dryRun?: true } & YesOption & DetachOption & JsonOption) => {
      const { client, dryRun = false } = options;
      if (!dryRun) {
        requireYes(options, "this deletes records for good; --dry-run shows how many");
      }
      return startJob(retentionJob, { clientId: client ?? null, dryRun }, options, deps);
    });
};
