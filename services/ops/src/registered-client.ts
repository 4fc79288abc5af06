import { type ClientRow, createClientStore } from "@conversation-export/warehouse";
import type { CommandDeps } from "./command-deps.ts";
import { readWarehouseConfig } from "./config.ts";
import { withStore } from "./connections.ts";

/** The client, also a deleted one; null: there never was one. Throws `CommandError` when ClickHouse does not answer. */
export const findClient = (id: string, { now }: Pick<CommandDeps, "now">): Promise<ClientRow | null> => {
  const server = readWarehouseConfig();
  const open = () => createClientStore({ ...server, application: "export-ops", now: () => now().getTime() });
  return withStore(server, open, (store) => store.findClient(id));
};

/** Says it when there is no such client, which may have events all the same; undefined: no client was named. */
export const warnUnlessRegistered = async (
  id: string | undefined,
  deps: Pick<CommandDeps, "now" | "say">,
): Promise<void> => {
  if (id === undefined || (await findClient(id, deps)) !== null) return;
  deps.say(
    `warning: no client ${id} is registered, only events that name it nevertheless are looked at: \`export-ops clients list\` shows those that are`,
  );
};
