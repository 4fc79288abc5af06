import { audited } from "../audit/audited.ts";
import { SCOPES } from "@conversation-export/warehouse";
import type { Command } from "commander";
import { clientId, future, labelText, listOf, secretName } from "../commands/arguments.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { readOptionalQueueConfig } from "../config.ts";
import { withRedis } from "../connect/connections.ts";
import { explain } from "../explain/explain.ts";
import { withClientStore } from "./client-store.ts";
import { createKeys, type NewKey } from "./keys.ts";
import type { OfClient } from "./registered-client.ts";

export const addKeyCommands = (program: Command, deps: CommandDeps): void => {
  const lastUses = async () => {
    const redis = readOptionalQueueConfig(deps.env);
    if (redis === null) return null;
    try {
      const { createKeyUses } = await import("@conversation-export/queue");
      return await withRedis(redis, (one) => createKeyUses({ redis: one }).list());
    } catch (error) {
      deps.say(`warning: the last use of keys is unknown: ${explain(error) ?? String(error)}`);
      return null;
    }
  };
  const withKeys = (work: (keys: ReturnType<typeof createKeys>) => Promise<void>) =>
    withClientStore(deps, (store) => work(createKeys({ ...deps, store, lastUses })));

  const keys = program.command("keys").addHelpText(
    "after",
    `
Examples:
  export-ops keys create --client acme --scopes export,end_users --label "nightly copy"
  export-ops keys create --client acme --expires 90d --out acme.key
  export-ops keys create --client acme --secret acme-key | kubectl apply -f -
  export-ops keys list --client acme
  export-ops keys revoke key_0123456789abcdef`,
  );
  keys
    .command("create")
    .description("create a key and print it; it cannot be shown again")
    .requiredOption("--client <id>", "the client whose records it reads", clientId)
    .option("--label <text>", "what the key is for", labelText, "")
    .option(
      "--scopes <list>",
      `its scopes, separated by commas: ${SCOPES.join(", ")}`,
      listOf(SCOPES, "scope"),
      ["export"],
    )
    .option(
      "--expires <when>",
      "when it stops to work: 90d, 2027-03-01 or an instant (default: never)",
      future(deps.now),
    )
    .option("--out <file>", "write the key to a new file that only you can read, instead of printing it")
    .option("--secret <name>", "write it as a Secret of Kubernetes with this name, field `key`", secretName)
    .option("--json", "print JSON")
    .action((options: NewKey, command: Command) =>
      audited(command, deps, () => withKeys((all) => all.create(options))),
    );
  keys
    .command("list")
    .description("list keys, without their secrets")
    .option("--client <id>", "only keys of this client", clientId)
    .option("--json", "print JSON")
    .action((options: OfClient) => withKeys((all) => all.list(options)));
  keys
    .command("revoke")
    .description("revoke a key for good")
    .argument("<key-id>", "as `keys list` shows it")
    .option("--json", "print JSON")
    .action((keyId: string, options: JsonOption, command: Command) =>
      audited(command, deps, () => withKeys((all) => all.revoke(keyId, options))),
    );
};
