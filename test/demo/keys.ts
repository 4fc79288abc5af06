import { ops } from "../system/ops.ts";
import type { Variables } from "./env-variables.ts";

/** The client of the env file exists already. */
export const createKeys = async (
  variables: Variables,
  clients: readonly string[],
): Promise<Map<string, string>> => {
  const create = async (client: string): Promise<[string, string]> => {
    if (client !== variables["CLIENT_ID"]) await ops(variables, "clients", "create", client);
    const answer = await ops(variables, "keys", "create", "--client", client, "--label", "demo", "--json");
    return [client, (JSON.parse(answer) as { key: string }).key];
  };
  return new Map(await Promise.all(clients.map(create)));
};
