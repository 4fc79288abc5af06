import { type AuditEntry, createAuditStore } from "@conversation-export/warehouse";
import type { Command } from "commander";
import { instant, wholeNumber } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readWarehouseConfig } from "../config.ts";
import { withWarehouse } from "../connect/connections.ts";
import { renderJson, renderTable } from "../output/print.ts";

type AuditOptions = {
  readonly since?: string;
  readonly until?: string;
  readonly actor?: string;
  readonly limit: number;
} & JsonOption;

const fields = (entry: AuditEntry) => ({
  run_id: entry.runId,
  begun_at: entry.begunAt,
  ended_at: entry.endedAt,
  actor: entry.actor,
  source: entry.source,
  command: entry.command,
  arguments: entry.arguments,
  state: entry.state,
  result: entry.result,
});

const render = (entries: readonly AuditEntry[]): string =>
  renderTable(
    ["BEGUN", "ACTOR", "FROM", "COMMAND", "ARGUMENTS", "STATE", "RESULT"],
    entries.map((entry) => [
      entry.begunAt.replace(/\.\d+Z$/, "Z"),
      entry.actor,
      entry.source,
      entry.command,
      JSON.stringify(entry.arguments),
      entry.state,
      entry.result || "-",
    ]),
  );

export const addAuditCommand = (program: Command, { env, print, now }: CommandDeps): void => {
  program
    .command("audit")
    .option("--since <instant>", "begun at or after it: 2026-11-01, or 3d ago", instant(now))
    .option("--until <instant>", "begun before it", instant(now))
    .option("--actor <name>", "only of this operator")
    .option("--limit <count>", "the newest, at most this many", wholeNumber(1, 100_000), 100)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
A change that is still "begun" runs, or its process died. Entries are kept for two years.

Examples:
  export-ops audit --since 7d
  export-ops audit --actor jane@example.com --json`,
    )
    .action(async ({ json, ...filter }: AuditOptions) => {
      const entries = await withWarehouse(readWarehouseConfig(env), (session) =>
        createAuditStore({ session }).list(filter),
      );
      print(json === true ? renderJson(entries.map(fields)) : render(entries));
    });
};
