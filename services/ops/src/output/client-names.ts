import type { UnregisteredClient } from "@conversation-export/warehouse";

const MAX_NAMED = 3;
const MAX_LENGTH = 60;
/** Letters, digits, signs and plain blanks; anything else would not show, or would change the terminal. */
const UNSEEN = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** A name in quotes in which nothing is invisible. */
const shown = (name: string): string => {
  const cut = name.length > MAX_LENGTH ? `${name.slice(0, MAX_LENGTH)}…` : name;
  return JSON.stringify(cut).replaceAll(UNSEEN, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
};

/** How many clients are not registered, with the names of a few. */
export const namedClients = (clients: readonly UnregisteredClient[]): string => {
  const names = clients.slice(0, MAX_NAMED).map(({ clientId, records }) => `${shown(clientId)} (${records})`);
  const more = clients.length - names.length;
  return `${clients.length} not registered, with records: ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};
