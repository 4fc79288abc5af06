import { escapesOf } from "@conversation-export/runtime";
import type { UnregisteredClient } from "@conversation-export/warehouse";

const MAX_NAMED = 3;
const MAX_LENGTH = 60;
/** Looks like a blank, or like nothing. */
const UNSEEN = /[^\P{Zs} ]|[\p{Default_Ignorable_Code_Point}\u2800]/gu;

const shown = (name: string): string => {
  const cut = name.length > MAX_LENGTH ? `${name.slice(0, MAX_LENGTH)}…` : name;
  return JSON.stringify(cut).replaceAll(UNSEEN, (char) => escapesOf(char));
};

export const namedClients = (clients: readonly UnregisteredClient[]): string => {
  const names = clients.slice(0, MAX_NAMED).map(({ clientId, records }) => `${shown(clientId)} (${records})`);
  const more = clients.length - names.length;
  return `${clients.length} not registered, with records: ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};
