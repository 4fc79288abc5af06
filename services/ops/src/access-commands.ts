import { parseRateWindows } from "@conversation-export/domain";
import {
  type ClientStore,
  createCampaignStore,
  createClientStore,
  LIMIT_NAMES,
  type LinkBounds,
  SCOPES,
} from "@conversation-export/warehouse";
import { type Command, InvalidArgumentError, Option } from "commander";
import { campaignKey, clientId, labelText, languageList, listOf, wholeNumber } from "./arguments.ts";
import { createCampaigns } from "./campaigns.ts";
import { type ClientSettings, createClients } from "./clients.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readWarehouseConfig } from "./config.ts";
import { withStore } from "./connections.ts";
import { createKeys } from "./keys.ts";

type RateLimits = NonNullable<ClientSettings["rateLimits"]>;

// Repeatable: each adds to those before.
const rateLimit = (text: string, before: RateLimits = {}): RateLimits => {
  const [, name = "", windows = ""] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  const limit = LIMIT_NAMES.find((known) => known === name);
  if (limit === undefined) {
    throw new InvalidArgumentError(
      `'${name || text}' is no limit; it must be NAME=WINDOWS with a name of ${LIMIT_NAMES.join(", ")}.`,
    );
  }
  if (limit in before) throw new InvalidArgumentError(`${limit} is given more than once.`);
  const parsed = windows === "default" ? null : parseRateWindows(windows);
  if (parsed === undefined) {
    throw new InvalidArgumentError(
      `'${windows}' are no windows; they must be as in 10/1s,100/1m (units s, m, h, d), or off, or default.`,
    );
  }
  return { ...before, [limit]: parsed };
};

/** `off`: nothing is deleted by age. */
const retentionDays = (text: string): number | "off" =>
  text === "off" ? text : wholeNumber(1, 36_500)(text);

type SettingOptions = {
  linkBounds?: LinkBounds | "default";
  rateLimit?: RateLimits;
  retentionDays?: number | "off";
} & JsonOption;

const settingsOf = ({
  linkBounds,
  rateLimit: rateLimits,
  retentionDays: days,
}: SettingOptions): ClientSettings => ({
  ...(linkBounds !== undefined && { linkBounds: linkBounds === "default" ? null : linkBounds }),
  ...(rateLimits !== undefined && { rateLimits }),
  ...(days !== undefined && { retentionDays: days === "off" ? null : days }),
});

const addSettings = (command: Command, linkBounds: readonly string[]): Command =>
  command
    .addOption(
      new Option(
        "--link-bounds <form>",
        "how next_page_uri carries the window (default: as export-api is set)",
      ).choices(linkBounds),
    )
    .addOption(
      new Option(
        "--rate-limit <name=windows>",
        "requests that are allowed, such as conversations=10/1s,100/1m; may be repeated (default: as export-api is set)",
      ).argParser(rateLimit),
    )
    .option(
      "--retention-days <days>",
      "let the retention job delete records that were created earlier; off: keep them (default: off)",
      retentionDays,
    );

/** Who may read what: clients, their keys, and the campaigns that they may trigger. */
export const addAccessCommands = (program: Command, { print, now }: CommandDeps): void => {
  const withClientStore = (work: (store: ClientStore) => Promise<void>): Promise<void> => {
    const warehouse = readWarehouseConfig();
    const open = () =>
      createClientStore({ ...warehouse, application: "export-ops", now: () => now().getTime() });
    return withStore(warehouse, open, work);
  };
  const withClients = (work: (clients: ReturnType<typeof createClients>) => Promise<void>) =>
    withClientStore((store) => work(createClients({ store, print, now })));
  const withKeys = (work: (keys: ReturnType<typeof createKeys>) => Promise<void>) =>
    withClientStore((store) => work(createKeys({ store, print, now })));
  const withCampaigns = (work: (campaigns: ReturnType<typeof createCampaigns>) => Promise<void>) =>
    withClientStore((clients) => {
      const warehouse = readWarehouseConfig();
      const open = () =>
        createCampaignStore({ ...warehouse, application: "export-ops", now: () => now().getTime() });
      return withStore(warehouse, open, (store) => work(createCampaigns({ store, clients, print, now })));
    });

  const clients = program
    .command("clients")
    .description("the customers whose records may be read")
    .addHelpText(
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
      .description("make a client, or bring a deleted one back")
      .argument("<id>", "the `clientid` of its events", clientId),
    ["same", "advancing"],
  )
    .option("--json", "print JSON")
    .action((id: string, options: SettingOptions) =>
      withClients((all) => all.create(id, settingsOf(options), options.json ?? false)),
    );
  addSettings(
    clients
      .command("set")
      .description("change the settings that are given; `default` stands for the configuration of export-api")
      .argument("<id>", "the client", clientId),
    ["same", "advancing", "default"],
  )
    .option("--json", "print JSON")
    .action((id: string, options: SettingOptions, command: Command) => {
      const settings = settingsOf(options);
      if (Object.keys(settings).length === 0) {
        command.error("error: give --link-bounds or --rate-limit or --retention-days");
      }
      return withClients((all) => all.set(id, settings, options.json ?? false));
    });
  clients
    .command("list")
    .description("all clients, deleted ones too")
    .option("--json", "print JSON")
    .action(({ json = false }: { json?: boolean }) => withClients((all) => all.list(json)));
  clients
    .command("delete")
    .description("answer the keys of a client with 404; keys and records stay")
    .argument("<id>", "the client", clientId)
    .option("--json", "print JSON")
    .action((id: string, { json = false }: { json?: boolean }) => withClients((all) => all.delete(id, json)));

  const keys = program
    .command("keys")
    .description("the API keys of clients")
    .addHelpText(
      "after",
      `
Examples:
  export-ops keys create --client acme --scopes export,end_users --label "nightly copy"
  export-ops keys list --client acme
  export-ops keys revoke key_0123456789abcdef`,
    );
  keys
    .command("create")
    .description("make a key and print it, this once")
    .requiredOption("--client <id>", "the client it reads", clientId)
    .option("--label <text>", "what the key is for", labelText, "")
    .option(
      "--scopes <list>",
      `what it may be used for, of ${SCOPES.join(", ")}, with commas between`,
      listOf(SCOPES, "scope"),
      ["export"],
    )
    .option("--json", "print JSON")
    .action((options: { client: string; label: string; scopes: string[] } & JsonOption) => {
      const { client, label, scopes, json = false } = options;
      return withKeys((all) => all.create({ clientId: client, label, scopes, json }));
    });
  keys
    .command("list")
    .description("keys, without their secrets")
    .option("--client <id>", "of one client only", clientId)
    .option("--json", "print JSON")
    .action(({ client, json = false }: { client?: string; json?: boolean }) =>
      withKeys((all) => all.list(client ?? null, json)),
    );
  keys
    .command("revoke")
    .description("stop a key for good")
    .argument("<key-id>", "as `keys list` shows it")
    .option("--json", "print JSON")
    .action((keyId: string, { json = false }: { json?: boolean }) =>
      withKeys((all) => all.revoke(keyId, json)),
    );

  const campaigns = program
    .command("campaigns")
    .description("the campaigns that clients may trigger by SMS")
    .addHelpText(
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
      "what it can be sent in, with commas between (default: any)",
      languageList,
      [],
    )
    .option("--json", "print JSON")
    .action((key: string, options: { client: string; languages: string[] } & JsonOption) => {
      const { client, languages, json = false } = options;
      return withCampaigns((all) => all.create({ clientId: client, key, languages, json }));
    });
  campaigns
    .command("list")
    .description("all campaigns, deleted ones too")
    .option("--client <id>", "of one client only", clientId)
    .option("--json", "print JSON")
    .action(({ client, json = false }: { client?: string; json?: boolean }) =>
      withCampaigns((all) => all.list(client ?? null, json)),
    );
  campaigns
    .command("delete")
    .description("answer triggers of a campaign with 404")
    .argument("<key>", "the campaign", campaignKey)
    .requiredOption("--client <id>", "the client whose it is", clientId)
    .option("--json", "print JSON")
    .action((key: string, options: { client: string } & JsonOption) =>
      withCampaigns((all) => all.delete(options.client, key, options.json ?? false)),
    );
};
