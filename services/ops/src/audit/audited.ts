import { randomUUID } from "node:crypto";
import { type AuditNote, createAuditStore, isSetupError } from "@conversation-export/warehouse";
import type { Command } from "commander";
import type { CommandDeps } from "../commands/command-deps.ts";
import { readOperator, readWarehouseConfig, type WarehouseConfig } from "../config.ts";
import { withWarehouse } from "../connect/connections.ts";
import { explain } from "../explain/explain.ts";

const PERSONAL: ReadonlySet<string> = new Set(["email", "chatterId", "endUserId"]);

const nameOf = (command: Command): string => {
  const above = command.parent;
  return above === null || above.parent === null ? command.name() : `${nameOf(above)} ${command.name()}`;
};

/** Without names of persons. */
export const argumentsOf = (command: Command): Record<string, unknown> => {
  const given = Object.entries(command.opts()).filter(
    ([name]) => command.getOptionValueSource(name) === "cli",
  );
  return {
    ...(command.args.length > 0 && { arguments: command.args }),
    ...Object.fromEntries(given.map(([name, value]) => [name, PERSONAL.has(name) ? "(a person)" : value])),
  };
};

const write = (server: WarehouseConfig, note: AuditNote): Promise<void> =>
  withWarehouse(server, (session) => createAuditStore({ session }).note([note]));

/**
 * A dry run has no audit entry. Without the first entry nothing is changed; with `tablesMayBeMissing` missing tables do
 * not prevent the work.
 * @throws ConfigError without an operator
 */
export const audited = async <T>(
  command: Command,
  {
    env,
    say,
    tablesMayBeMissing = false,
  }: Pick<CommandDeps, "env" | "say"> & { readonly tablesMayBeMissing?: boolean },
  work: (report: (found: Readonly<Record<string, unknown>>) => void) => Promise<T>,
): Promise<T> => {
  let found: Readonly<Record<string, unknown>> = {};
  const doWork = (): Promise<T> =>
    work((facts) => {
      found = facts;
    });
  if (command.opts()["dryRun"] === true) return doWork();
  const actor = readOperator(env);
  const server = readWarehouseConfig(env);
  const begun: AuditNote = {
    runId: randomUUID(),
    state: "begun",
    actor,
    command: nameOf(command),
    arguments: argumentsOf(command),
    result: "",
  };
  try {
    await write(server, begun);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!tablesMayBeMissing || !isSetupError(cause)) throw error;
  }
  const end = (note: Pick<AuditNote, "state" | "result">): Promise<void> =>
    write(server, { ...begun, ...note, arguments: { ...begun.arguments, ...found } }).catch(
      (error: unknown) =>
        say(`warning: writing the end to the audit failed: ${explain(error) ?? String(error)}`),
    );
  let result: T;
  try {
    result = await doWork();
  } catch (error) {
    await end({ state: "failed", result: (explain(error) ?? String(error)).slice(0, 500) });
    throw error;
  }
  await end({ state: "done", result: "" });
  return result;
};
