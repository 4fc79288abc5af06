import type { ClientStore } from "@conversation-export/warehouse";
import { CommandError } from "../explain/explain.ts";
import type { CommandDeps, JsonOption } from "../commands/command-deps.ts";
import { withClientStore } from "./client-store.ts";

export type OfClient = {
  /** Absent: all clients. */
  readonly client?: string;
} & JsonOption;

/** Deleted ones too; null: all clients. @throws CommandError */
export const requireKnown = async (store: Pick<ClientStore, "findClient">, id: string | null) => {
  if (id === null || (await store.findClient(id)) !== null) return;
  throw new CommandError(`there is no client ${id}: \`export-ops clients list\` shows those that exist`);
};

/** @throws CommandError */
export const requireActive = async (store: Pick<ClientStore, "findClient">, id: string): Promise<void> => {
  const client = await store.findClient(id);
  if (client !== null && !client.deleted) return;
  const state = client === null ? `there is no client ${id}` : `the client ${id} is deleted`;
  throw new CommandError(`${state}: make it with \`export-ops clients create ${id}\``);
};

/** Its events may exist nevertheless. */
export const warnUnlessRegistered = async (
  id: string | undefined,
  deps: Pick<CommandDeps, "env" | "now" | "say">,
): Promise<void> => {
  if (id === undefined || (await withClientStore(deps, (store) => store.findClient(id))) !== null) return;
  deps.say(
    `warning: no client ${id} is registered; events that name it are processed nevertheless. \`export-ops clients list\` shows the registered clients`,
  );
};
