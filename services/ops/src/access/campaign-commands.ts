import { audited } from "../audit/audited.ts";
import { createCampaignStore, createClientStore } from "@conversation-export/warehouse";
import type { Command } from "commander";
import { campaignKey, clientId, languageList } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readWarehouseConfig } from "../config.ts";
import { withWarehouse } from "../connect/connections.ts";
import { createCampaigns, type NewCampaign } from "./campaigns.ts";
import type { OfClient } from "./registered-client.ts";

export const addCampaignCommands = (program: Command, deps: CommandDeps): void => {
  const { env, print, now } = deps;
  const withCampaigns = (work: (campaigns: ReturnType<typeof createCampaigns>) => Promise<void>) =>
    withWarehouse(readWarehouseConfig(env), (session) => {
      const stores = { session, now: () => now().getTime() };
      const clients = createClientStore(stores);
      return work(createCampaigns({ store: createCampaignStore(stores), clients, print, now }));
    });

  const campaigns = program.command("campaigns").addHelpText(
    "after",
    `
Examples:
  export-ops campaigns create welcome --client acme --languages en,fr
  export-ops campaigns list --client acme
  export-ops campaigns delete welcome --client acme`,
  );
  campaigns
    .command("create")
    .description("register a campaign, or bring a deleted one back")
    .argument("<key>", "the `campaign_key` of the requests", campaignKey)
    .requiredOption("--client <id>", "the client that may trigger it", clientId)
    .option(
      "--languages <list>",
      "languages it can be sent in, separated by commas (default: any)",
      languageList,
      [],
    )
    .option("--json", "print JSON")
    .action((key: string, options: NewCampaign, command: Command) =>
      audited(command, deps, () => withCampaigns((all) => all.create(key, options))),
    );
  campaigns
    .command("list")
    .description("all campaigns, deleted ones too")
    .option("--client <id>", "only campaigns of this client", clientId)
    .option("--json", "print JSON")
    .action((options: OfClient) => withCampaigns((all) => all.list(options)));
  campaigns
    .command("delete")
    .description("delete a campaign; its triggers are answered with 404")
    .argument("<key>", "the campaign", campaignKey)
    .requiredOption("--client <id>", "the client that owns it", clientId)
    .option("--json", "print JSON")
    .action((key: string, options: { client: string } & JsonOption, command: Command) =>
      audited(command, deps, () => withCampaigns((all) => all.delete(options.client, key, options))),
    );
};
