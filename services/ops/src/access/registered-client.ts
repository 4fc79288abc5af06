import type { ClientRow } from "@conversation-export/warehouse";
import type { CommandDeps } from "../commands/command-deps.ts";
import { withClientStore } from "./client-store.ts";

/** Deleted ones too; null: never registered. */
export const findClient = (id: string, deps: Pick<CommandDeps, "env" | "now">): Promise<ClientRow | null> =>
  withClientStore(deps, (store) => store.findClient(id));

/** Its events may exist nevertheless. */
export const warnUnlessRegistered = async (
  id: string | undefined,
  deps: Pick<CommandDeps, "env" | "now" | "say">,
): Promise<void> => {
  if (id === undefined || (await findClient(id, deps)) !== null) return;
  deps.say(
    `warning: no client ${id} is registered; events that name it are processed nevertheless. \`export-ops clients list\` shows the registered clients`,
  );
};
