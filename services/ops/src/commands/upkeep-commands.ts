import { audited } from "../audit/audited.ts";
import { compactJob, reconcileJob, type ReconcileResult, retentionJob } from "@conversation-export/queue";
import type { Command } from "commander";
import { checkSpan, clientId, instant, type Span } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { requireYes, YES_FLAG, type YesOption } from "../output/confirm.ts";
import { warnUnlessRegistered } from "../access/registered-client.ts";
import { DETACH_FLAG, type DetachOption, startJob } from "../jobs/start-job.ts";

const HOUR_MS = 3_600_000;
const toHour = (ms: number): string => new Date(ms).toISOString().replace(/:\d\d\.\d+Z$/, "Z");

/** null when an hour was compared. */
export const nothingCompared = ({ from, to }: Pick<ReconcileResult, "from" | "to">): string | null => {
  const end = Date.parse(to);
  if (Date.parse(from) < end) return null;
  return `no hour was compared: all hours up to ${toHour(end)} were compared before, the next one ends at ${toHour(end + HOUR_MS)}; --since and --until compare hours again`;
};

export const addUpkeepCommands = (program: Command, deps: CommandDeps): void => {
  const at = instant(deps.now);

  program
    .command("compact")
    .option("--since <instant>", "windows that begin at or after it (default: all that are due)", at)
    .option("--until <instant>", "windows that end at or before it", at)
    .option("--force", "also windows that were compacted before")
    .option("--dry-run", "only report what would be done")
    .option(...DETACH_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Readers see no difference. Open windows are left alone. Merging parts is left to ClickHouse.

Examples:
  export-ops compact --dry-run
  export-ops compact --since 2026-11-01 --until 2026-11-02
  export-ops compact --since 7d --force --detach`,
    )
    .action(
      (options: Span & { force?: true; dryRun?: true } & DetachOption & JsonOption, command: Command) => {
        checkSpan(options, command);
        const { since, until, force = false, dryRun = false } = options;
        const range =
          since === undefined && until === undefined
            ? null
            : { from: since ?? "1970-01-01T00:00:00Z", to: until ?? "2106-01-01T00:00:00Z" };
        return audited(command, deps, () => startJob(compactJob, { range, force, dryRun }, options, deps));
      },
    );

  program
    .command("reconcile")
    .option("--client <id>", "only this client's records", clientId)
    .option("--since <instant>", "from this hour of arrival on (default: as below)", at)
    .option("--until <instant>", "up to this hour (default: the last one that has ended)", at)
    .option(...DETACH_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
It compares whole hours that ingest has stored, as far back as Kafka keeps its topics. Without --client, --since and
--until it continues where the last such run ended (scheduled or by this command), and compares nothing when no hour
has ended since. With --client or --until, but without --since, it compares one hour: the one before --until, or the
last one that has ended.

Examples:
  export-ops reconcile
  export-ops reconcile --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z --client acme --json`,
    )
    .action(async (options: Span & { client?: string } & DetachOption & JsonOption, command: Command) => {
      checkSpan(options, command);
      const data = {
        from: options.since ?? null,
        to: options.until ?? null,
        clientId: options.client ?? null,
      };
      await warnUnlessRegistered(options.client, deps);
      return audited(command, deps, () => startJob(reconcileJob, data, options, deps, nothingCompared));
    });

  program
    .command("retention")
    .option("--client <id>", "only this client's records", clientId)
    .option("--dry-run", "only report what would be deleted")
    .option(...DETACH_FLAG)
    .option(...YES_FLAG)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Records are kept until \`export-ops clients set acme --retention-days 365\` sets a retention. A dry run needs no --yes.

Examples:
  export-ops retention --dry-run
  export-ops retention --client acme --yes`,
    )
    .action(
      (
        options: { client?: string; dryRun?: true } & YesOption & DetachOption & JsonOption,
        command: Command,
      ) => {
        const { client, dryRun = false } = options;
        if (!dryRun) {
          requireYes(options, "this deletes records for good; --dry-run shows how many");
        }
        return audited(command, deps, () =>
          startJob(retentionJob, { clientId: client ?? null, dryRun }, options, deps),
        );
      },
    );
};
