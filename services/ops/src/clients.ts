import type { ClientRow, ClientStore, LinkBounds } from "@conversation-export/warehouse";
import { CommandError } from "./explain.ts";
import { type Print, renderJson, renderTable } from "./print.ts";

export type Clients = {
  create(clientId: string, linkBounds: LinkBounds | null, json: boolean): Promise<void>;
  list(json: boolean): Promise<void>;
  delete(clientId: string): Promise<void>;
};

const view = (client: ClientRow) => ({
  client_id: client.clientId,
  state: client.deleted ? "deleted" : "active",
  link_bounds: client.linkBounds,
  created_at: client.createdAt,
});

/** The customers whose records may be read. Every action prints its result; throws `CommandError`. */
export const createClients = (deps: { store: ClientStore; print: Print; now: () => Date }): Clients => {
  const { store, print, now } = deps;
  return {
    create: async (clientId, linkBounds, json) => {
      const found = await store.findClient(clientId);
      if (found !== null && !found.deleted) {
        throw new CommandError(
          `the client ${clientId} exists already: make a key with \`export-ops keys create --client ${clientId}\``,
        );
      }
      const client: ClientRow = {
        clientId,
        linkBounds,
        deleted: false,
        createdAt: found?.createdAt ?? now().toISOString(),
      };
      await store.saveClient(client);
      if (json) print(renderJson(view(client)));
      else if (found === null) print(`created the client ${clientId}`);
      else print(`created the client ${clientId} again, its keys that are not revoked work again`);
    },
    list: async (json) => {
      const clients = (await store.listClients()).map(view);
      if (json) return print(renderJson(clients));
      const rows = clients.map((row) => [row.client_id, row.state, row.link_bounds ?? "-", row.created_at]);
      print(renderTable(["CLIENT", "STATE", "LINK BOUNDS", "CREATED"], rows));
    },
    delete: async (clientId) => {
      const found = await store.findClient(clientId);
      if (found === null || found.deleted) {
        throw new CommandError(
          found === null
            ? `there is no client ${clientId}: \`export-ops clients list\` shows those that exist`
            : `the client ${clientId} is deleted already`,
        );
      }
      await store.saveClient({ ...found, deleted: true });
      print(`deleted the client ${clientId}; its keys stay and are answered with 404, its records stay`);
    },
  };
};
