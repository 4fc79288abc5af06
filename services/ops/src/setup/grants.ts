import {
  CLIENT_USER,
  type Grant,
  grantsOf,
  onCluster,
  viewProfile,
  viewProfileSql,
  type WarehouseUser,
} from "@conversation-export/warehouse";
import type { WarehouseConfig } from "../config.ts";
import { usageError } from "../explain/explain.ts";
import { type Print, renderJson } from "../output/print.ts";

const databaseOf = ({ url }: WarehouseConfig): string => decodeURIComponent(new URL(url).pathname.slice(1));

const listed = (grants: readonly Grant[]): string =>
  grants.map(({ privileges, on: place }) => `  ${privileges.join(", ")} ON ${place}`).join(",\n");

/** `exact` also revokes every other right. */
export const printGrants = (
  server: WarehouseConfig,
  users: readonly WarehouseUser[],
  { exact, json }: { readonly exact: boolean; readonly json: boolean },
  print: Print,
): void => {
  const database = databaseOf(server);
  const granted = users.map((user) => ({
    user,
    grants: grantsOf(user, database, server),
    ...(user === "analyst" && { settings: viewProfile(user) }),
  }));
  if (json) return print(renderJson(granted));
  const on = onCluster(server);
  for (const { user, grants } of granted) {
    print(`GRANT ${on}\n${listed(grants)}\n  TO ${user}${exact ? " WITH REPLACE OPTION" : ""};\n`);
    if (user === "analyst") print(`ALTER USER ${user} ${on} MODIFY SETTINGS\n${viewProfileSql(user)};\n`);
  }
};

/** @throws CommandError on a cluster, where readers of the views see the tables behind them */
export const printClientUser = (
  server: WarehouseConfig,
  clientId: string,
  { exact, json }: { readonly exact: boolean; readonly json: boolean },
  print: Print,
): void => {
  if (server.cluster !== null) {
    throw usageError(
      "on a cluster clients get no user: it would have to read the tables behind the views, which hold the rows of all clients",
    );
  }
  const user = `${CLIENT_USER}${clientId}`;
  const grants = grantsOf("analyst", databaseOf(server), server);
  if (json) return print(renderJson({ user, grants, settings: viewProfile("client") }));
  print("CREATE SETTINGS PROFILE IF NOT EXISTS client;\n");
  print(`ALTER SETTINGS PROFILE client SETTINGS\n${viewProfileSql("client")};\n`);
  print(`ALTER USER \`${user}\` SETTINGS PROFILE 'client';\n`);
  print(`GRANT\n${listed(grants)}\n  TO \`${user}\`${exact ? " WITH REPLACE OPTION" : ""};\n`);
};

export const printRedisUsers = async (json: boolean, print: Print): Promise<void> => {
  const { REDIS_DEFAULT_RULES, REDIS_USERS, redisRules } = await import("@conversation-export/queue");
  const users = [
    // Without it everybody gets in, whatever `requirepass` says.
    { user: "default", rules: REDIS_DEFAULT_RULES },
    ...REDIS_USERS.map((user) => ({ user, rules: redisRules(user) })),
  ];
  if (json) return print(renderJson(users));
  for (const { user, rules } of users) print(`user ${user} on >PASSWORD-OF-${user} ${rules}`);
};
