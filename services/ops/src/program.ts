import { type ClientStore, createClientStore, type LinkBounds } from "@conversation-export/warehouse";
import { Command, InvalidArgumentError, Option } from "commander";
import { createClients } from "./clients.ts";
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
const clusterName = matching(/^[\w-]+$/, "a name of letters, digits, '_' and '-'");
const labelText = matching(/^[^\p{Cc}]{0,200}$/u, "at most 200 characters without control characters");

const scopeList = (text: string): string[] => {
  const scopes = text.split(",").map((scope) => scope.trim());
  if (!scopes.every((scope) => /^[a-z_]+$/.test(scope))) {
    throw new InvalidArgumentError("It must be a list such as export,end_users.");
  }
  return [...new Set(scopes)];
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

  const program = new Command("export-ops")
    .description("Operate the conversation export: tables, topics, clients and keys.")
    .exitOverride()
    .showHelpAfterError("(--help shows what is possible)")
    .addHelpText(
      "after",
      `
Variables: CLICKHOUSE_URL (user for migrations), CLUSTER, KAFKA_BROKERS,
           TOPIC_CONVERSATIONS, TOPIC_MESSAGES, TOPIC_END_USERS
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
    .addOption(
      new Option(
        "--link-bounds <form>",
        "how next_page_uri carries the window (default: as export-api is set)",
      ).choices(["same", "advancing"]),
    )
    .option("--json", "print JSON")
    .action((id: string, options: { linkBounds?: LinkBounds } & JsonOption) =>
      withClients((all) => all.create(id, options.linkBounds ?? null, options.json ?? false)),
    );
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
    .option("--scopes <list>", "what it may be used for, with commas between", scopeList, ["export"])
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

  program
    .command("schemas")
    .description("JSON Schema of the events, printed or written to files")
    .option("--out <folder>", "the folder to write to")
    .action(({ out }: { out?: string }) => putSchemas(out, print));

  return program;
};
