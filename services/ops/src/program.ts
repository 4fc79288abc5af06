import { CAMPAIGN_KEY, LANGUAGE_TAG, parseRateWindows } from "@conversation-export/domain";
import {
  type ClientStore,
  createCampaignStore,
  createClientStore,
  LIMIT_NAMES,
  type LinkBounds,
  SCOPES,
} from "@conversation-export/warehouse";
import { Command, InvalidArgumentError, Option } from "commander";
import { createCampaigns } from "./campaigns.ts";
import { type ClientSettings, createClients } from "./clients.ts";
import { readBusConfig, readWarehouseConfig } from "./config.ts";
import { explainWarehouse } from "./explain.ts";
import { createKeys } from "./keys.ts";
import { applyMigrations } from "./migrate.ts";
import type { Print } from "./print.ts";
import { putSchemas } from "./schemas.ts";
import { createTopics, type TopicOptions } from "./topics.ts";

type JsonOption = { json?: true };

const matching =
  (shape: RegExp, expectation: string) =>
  (text: string): string => {
    if (!shape.test(text)) throw new InvalidArgumentError(`It must be ${expectation}.`);
    return text;
  };

const wholeNumber =
  (from: number, to: number) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= from && value <= to)) {
      throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
    }
    return value;
  };

const clientId = matching(
  /^[A-Za-z0-9._-]{1,128}$/,
  "1 to 128 characters of A-Z, a-z, 0-9, '.', '_' and '-'",
);
const campaignKey = matching(CAMPAIGN_KEY, "1 to 128 characters of A-Z, a-z, 0-9, '.', '_' and '-'");
const clusterName = matching(/^[\w-]+$/, "a name of letters, digits, '_' and '-'");
const labelText = matching(/^[^\p{Cc}]{0,200}$/u, "at most 200 characters without control characters");

const scopeList = (text: string): string[] => {
  const scopes = text.split(",").map((scope) => scope.trim());
  const unknown = scopes.find((scope) => !SCOPES.some((known) => known === scope));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(
      `'${unknown}' is no scope; it must be a list of ${SCOPES.join(", ")}, with commas between.`,
    );
  }
  return [...new Set(scopes)];
};

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

const linkBoundsOption = (...choices: readonly string[]): Option =>
  new Option(
    "--link-bounds <form>",
    "how next_page_uri carries the window (default: as export-api is set)",
  ).choices(choices);
const rateLimitOption = (): Option =>
  new Option(
    "--rate-limit <name=windows>",
    "requests that are allowed, such as conversations=10/1s,100/1m; may be repeated (default: as export-api is set)",
  ).argParser(rateLimit);

type SettingOptions = { linkBounds?: LinkBounds | "default"; rateLimit?: RateLimits } & JsonOption;

const settingsOf = ({ linkBounds, rateLimit: rateLimits }: SettingOptions): ClientSettings => ({
  ...(linkBounds !== undefined && { linkBounds: linkBounds === "default" ? null : linkBounds }),
  ...(rateLimits !== undefined && { rateLimits }),
});

const languageList = (text: string): string[] => {
  const languages = text.split(",").map((language) => language.trim());
  if (!languages.every((language) => LANGUAGE_TAG.test(language))) {
    throw new InvalidArgumentError("It must be a list of language tags such as en,pt-BR.");
  }
  return [...new Set(languages)];
};

/**
 * The commands of `export-ops`. Each reads only the variables that it needs. Parsing throws `CommanderError` for
 * wrong usage; the commands throw what `explain` explains.
 */
export const createProgram = (deps: { print: Print; now: () => Date }): Command => {
  const { print, now } = deps;

  const withStore = async (work: (store: ClientStore) => Promise<void>): Promise<void> => {
    const { url } = readWarehouseConfig();
    const store = createClientStore({ url, application: "export-ops", now: () => now().getTime() });
    try {
      await work(store);
    } catch (error) {
      throw explainWarehouse(error, url);
    } finally {
      await store.close();
    }
  };
  const withClients = (work: (clients: ReturnType<typeof createClients>) => Promise<void>) =>
    withStore((store) => work(createClients({ store, print, now })));
  const withKeys = (work: (keys: ReturnType<typeof createKeys>) => Promise<void>) =>
    withStore((store) => work(createKeys({ store, print, now })));
  const withCampaigns = (work: (campaigns: ReturnType<typeof createCampaigns>) => Promise<void>) =>
    withStore(async (clients) => {
      const { url } = readWarehouseConfig();
      const store = createCampaignStore({ url, application: "export-ops", now: () => now().getTime() });
      try {
        await work(createCampaigns({ store, clients, print, now }));
      } finally {
        await store.close();
      }
    });

  const program = new Command("export-ops")
    .description("Operate the conversation export: tables, topics, clients, keys and campaigns.")
    .exitOverride()
    .showHelpAfterError("(--help shows what is possible)")
    .addHelpText(
      "after",
      `
Variables: CLICKHOUSE_URL (user for migrations), CLUSTER, KAFKA_BROKERS,
           TOPIC_CONVERSATIONS, TOPIC_MESSAGES, TOPIC_END_USERS, TOPIC_SMS_TRIGGERS
Exit code: 0 done, 1 failed, 2 wrong usage`,
    );

  program
    .command("migrate")
    .description("apply the migrations of the warehouse that have not been applied")
    .option(
      "--cluster <name>",
      "the ClickHouse cluster (default: CLUSTER, else a single server)",
      clusterName,
    )
    .action(async ({ cluster }: { cluster?: string }) => {
      const config = readWarehouseConfig();
      await applyMigrations({ ...config, cluster: cluster ?? config.cluster }, print);
    });

  program
    .command("topics")
    .description("the topics of events and dead letters")
    .command("create")
    .description("make the topics that do not exist; the others stay as they are")
    .option("--partitions <count>", "partitions of each topic", wholeNumber(1, 65_535), 6)
    .option("--replication <count>", "replicas of each partition", wholeNumber(1, 100), 1)
    .option("--timeout <seconds>", "how long to wait for Kafka", wholeNumber(1, 3600), 15)
    .option("--json", "print JSON")
    .action(async (options: Omit<TopicOptions, "timeoutMs" | "json"> & { timeout: number } & JsonOption) => {
      const { partitions, replication, timeout, json = false } = options;
      await createTopics(
        readBusConfig(),
        { partitions, replication, timeoutMs: timeout * 1000, json },
        print,
      );
    });

  const clients = program.command("clients").description("the customers whose records may be read");
  clients
    .command("create")
    .description("make a client, or bring a deleted one back")
    .argument("<id>", "the `clientid` of its events", clientId)
    .addOption(linkBoundsOption("same", "advancing"))
    .addOption(rateLimitOption())
    .option("--json", "print JSON")
    .action((id: string, options: SettingOptions) =>
      withClients((all) => all.create(id, settingsOf(options), options.json ?? false)),
    );
  clients
    .command("set")
    .description("change the settings that are given; `default` stands for the configuration of export-api")
    .argument("<id>", "the client", clientId)
    .addOption(linkBoundsOption("same", "advancing", "default"))
    .addOption(rateLimitOption())
    .option("--json", "print JSON")
    .action((id: string, options: SettingOptions, command: Command) => {
      const settings = settingsOf(options);
      if (Object.keys(settings).length === 0) {
        command.error("error: give --link-bounds or --rate-limit");
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
    .action((id: string) => withClients((all) => all.delete(id)));

  const keys = program.command("keys").description("the API keys of clients");
  keys
    .command("create")
    .description("make a key and print it, this once")
    .requiredOption("--client <id>", "the client it reads", clientId)
    .option("--label <text>", "what the key is for", labelText, "")
    .option(
      "--scopes <list>",
      `what it may be used for, of ${SCOPES.join(", ")}, with commas between`,
      scopeList,
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
    .action((keyId: string) => withKeys((all) => all.revoke(keyId)));

  const campaigns = program.command("campaigns").description("the campaigns that clients may trigger by SMS");
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
    .action((key: string, options: { client: string }) =>
      withCampaigns((all) => all.delete(options.client, key)),
    );

  program
    .command("schemas")
    .description("JSON Schema of the events, printed or written to files")
    .option("--out <folder>", "the folder to write to")
    .action(({ out }: { out?: string }) => putSchemas(out, print));

  return program;
};
