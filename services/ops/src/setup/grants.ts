import { REDIS_DEFAULT_RULES, REDIS_USERS, redisRules } from "@conversation-export/queue";
import {
  FIXED_SETTINGS,
  fixingStatement,
  grantsOf,
  onCluster,
  type WarehouseUser,
} from "@conversation-export/warehouse";
import type { WarehouseConfig } from "../config.ts";
import { type Print, renderJson } from "../output/print.ts";

/**
 * Prints a statement for each of the users; for analysts also one that fixes settings.
 *
 * @param server its address names the database
 * @param options.exact the statements also take away every other right of the user
 */
export const printGrants = (
  server: WarehouseConfig,
  users: readonly WarehouseUser[],
  { exact, json }: { readonly exact: boolean; readonly json: boolean },
  print: Print,
): void => {
  const database = decodeURIComponent(new URL(server.url).pathname.slice(1));
  const granted = users.map((user) => ({
    user,
    grants: grantsOf(user, database, server),
    ...(user === "analyst" && { fixed_settings: FIXED_SETTINGS }),
  }));
  if (json) return print(renderJson(granted));
  const on = onCluster(server);
  for (const { user, grants } of granted) {
    const listed = grants.map(({ privileges, on: place }) => `  ${privileges.join(", ")} ON ${place}`);
    print(`GRANT ${on}\n${listed.join(",\n")}\n  TO ${user}${exact ? " WITH REPLACE OPTION" : ""};\n`);
    if (user === "analyst") print(`${fixingStatement(user, on)};\n`);
  }
};

/** Prints a file of users for Redis, each with a place for its password. */
export const printRedisUsers = (json: boolean, print: Print): void => {
  const users = [
    // A file that does not name it lets everybody in as this user, whatever `requirepass` says.
    { user: "default", rules: REDIS_DEFAULT_RULES },
    ...REDIS_USERS.map((user) => ({ user, rules: redisRules(user) })),
  ];
  if (json) return print(renderJson(users));
  for (const { user, rules } of users) print(`user ${user} on >PASSWORD-OF-${user} ${rules}`);
};
