import { type ClientStore, createClientStore } from "@conversation-export/warehouse";
import type { CommandDeps } from "../commands/command-deps.ts";
import { readWarehouseConfig } from "../config.ts";
import { withWarehouse } from "../connect/connections.ts";

export const withClientStore = <T>(
  { env, now }: Pick<CommandDeps, "env" | "now">,
  work: (store: ClientStore) => Promise<T>,
): Promise<T> =>
  withWarehouse(readWarehouseConfig(env), (session) =>
    work(createClientStore({ session, now: () => now().getTime() })),
  );
