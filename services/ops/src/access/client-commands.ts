import { audited } from "../audit/audited.ts";
import { LINK_BOUNDS } from "@conversation-export/domain";
import type { Command } from "commander";
import { clientId } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { addSettings, type SettingOptions, settingsOf } from "./client-settings.ts";
import { withClientStore } from "./client-store.ts";
import { createClients } from "./clients.ts";

export const addClientCommands = (program: Command, deps: CommandDeps): void => {
  const withClients = (work: (clients: ReturnType<typeof createClients>) => Promise<void>) =>
    withClientStore(deps, (store) => work(createClients({ ...deps, store })));

  const clients = program.command("clients").addHelpText(
    "after",
    `
Examples:
  export-ops clients create acme
  export-ops clients create globex --link-bounds advancing --rate-limit conversations=20/1s,500/1m
  export-ops clients set globex --rate-limit conversations=default --retention-days 365
  export-ops clients list --json
  export-ops clients delete globex`,
  );
  addSettings(
    clients
      .command("create")
      .description("create a client, or restore a deleted one")
      .argument("<id>", "the `clientid` of its events", clientId),
    LINK_BOUNDS,
  )
    .option("--json", "print JSON")
    .action((id: string, options: SettingOptions, command: Command) =>
      audited(command, deps, () => withClients((all) => all.create(id, settingsOf(options), options))),
    );
  addSettings(
    clients
      .command("set")
      .description("change the given settings; `default` goes back to the configuration of export-api")
      .argument("<id>", "the client", clientId),
    [...LINK_BOUNDS, "default"],
  )
    .option("--json", "print JSON")
    .action((id: string, options: SettingOptions, command: Command) => {
      const settings = settingsOf(options);
      if (Object.keys(settings).length === 0) {
        command.error("error: give --link-bounds or --rate-limit or --retention-days");
      }
      return audited(command, deps, () => withClients((all) => all.set(id, settings, options)));
    });
  clients
    .command("list")
    .description("all clients, deleted ones too")
    .option("--json", "print JSON")
    .action((options: JsonOption) => withClients((all) => all.list(options)));
  clients
    .command("delete")
    .description("delete a client; its keys are answered with 404, keys and records stay")
    .argument("<id>", "the client", clientId)
    .option("--json", "print JSON")
    .action((id: string, options: JsonOption, command: Command) =>
      audited(command, deps, () => withClients((all) => all.delete(id, options))),
    );
};
