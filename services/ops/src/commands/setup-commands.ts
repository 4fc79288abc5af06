import { SERVICE_USERS } from "@conversation-export/warehouse";
import { audited } from "../audit/audited.ts";
import type { Command } from "commander";
import { clientId, clusterName, wholeNumber } from "./arguments.ts";
import type { CommandDeps, JsonOption } from "./command-deps.ts";
import { readBusConfig, readWarehouseConfig } from "../config.ts";
import { printClientUser, printGrants, printRedisUsers } from "../setup/grants.ts";
import { applyMigrations } from "../setup/migrate.ts";
import { putSchemas } from "../setup/schemas.ts";
import { createTopics, TOPIC_DEFAULTS, type TopicOptions } from "../setup/topics.ts";

type GrantOptions = JsonOption & {
  readonly cluster?: string;
  readonly exact?: true;
  readonly analyst?: true;
  readonly client?: string;
  readonly redis?: true;
};

const CLUSTER_OPTION = [
  "--cluster <name>",
  "the ClickHouse cluster (default: CLUSTER, else a single server)",
  clusterName,
] as const;

export const addSetupCommands = (program: Command, deps: CommandDeps): void => {
  const { env, print } = deps;

  program
    .command("migrate")
    .option(...CLUSTER_OPTION)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Examples:
  export-ops migrate
  export-ops migrate --cluster main`,
    )
    .action(async ({ cluster, json = false }: { cluster?: string; json?: boolean }, command: Command) => {
      const config = readWarehouseConfig(env);
      await audited(command, { ...deps, tablesMayBeMissing: true }, () =>
        applyMigrations({ ...config, cluster: cluster ?? config.cluster }, json, deps),
      );
    });

  program
    .command("grants")
    .option(...CLUSTER_OPTION)
    .option(
      "--exact",
      "let the statements also take away every right beyond, which an older version may need",
    )
    .option(
      "--analyst",
      "print the rights of the user for analysts instead, with the settings that are fixed for it",
    )
    .option(
      "--client <id>",
      "print the rights and the profile of the user client_ID, who sees only the rows of this client",
      clientId,
    )
    .option("--redis", "print the users of Redis instead, as its file of users (aclfile) takes them")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Reads CLICKHOUSE_URL for the name of the database and changes nothing. The users must exist; one with another
name than the printed one gets its rights by that name. Rights are added before an upgrade, and those that
nobody needs any more are taken away with --exact when no process of the older version is left.

Examples:
  export-ops grants
  export-ops grants --analyst
  export-ops grants --client acme
  export-ops grants --redis > users.acl
  export-ops grants | clickhouse-client --host clickhouse --user admin --multiquery
  export-ops grants --exact | clickhouse-client --host clickhouse --user admin --multiquery`,
    )
    .action(async (options: GrantOptions) => {
      const { exact = false, analyst = false, redis = false, client, json = false } = options;
      if (redis) return printRedisUsers(json, print);
      const config = readWarehouseConfig(env);
      const server = { ...config, cluster: options.cluster ?? config.cluster };
      if (client !== undefined) return printClientUser(server, client, { exact, json }, print);
      printGrants(server, analyst ? ["analyst"] : SERVICE_USERS, { exact, json }, print);
    });

  program
    .command("topics")
    .command("create")
    .description("create missing topics; existing ones stay as they are")
    .option(
      "--partitions <count>",
      `partitions of each topic (default: ${TOPIC_DEFAULTS.partitions})`,
      wholeNumber(1, 65_535),
    )
    .option(
      "--replication <count>",
      `replicas of each partition (default: ${TOPIC_DEFAULTS.replication})`,
      wholeNumber(1, 100),
    )
    .option("--timeout <seconds>", "how long to wait for Kafka", wholeNumber(1, 3600), 15)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Where an existing topic differs from the options, a warning names the tool of Kafka that changes it. Ingest reads added
partitions without a restart.

Examples:
  export-ops topics create --partitions 12 --replication 3
  export-ops topics create --timeout 120 --json`,
    )
    .action(async (options: TopicOptions, command: Command) => {
      const bus = readBusConfig(env);
      await audited(command, { ...deps, tablesMayBeMissing: true }, () => createTopics(bus, options, deps));
    });

  program
    .command("schemas")
    .option("--out <folder>", "the folder to write to")
    .option("--json", "print JSON (without --out always)")
    .addHelpText(
      "after",
      `
Examples:
  export-ops schemas
  export-ops schemas --out docs/schemas`,
    )
    .action(({ out, json = false }: { out?: string; json?: boolean }) => putSchemas(out, json, print));
};
