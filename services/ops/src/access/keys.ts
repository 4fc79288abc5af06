import { randomBytes } from "node:crypto";
import { createKey } from "@conversation-export/runtime";
import type { ClientStore } from "@conversation-export/warehouse";
import { CommandError } from "../explain/explain.ts";
import { type Print, renderJson, renderTable } from "../output/print.ts";

export type NewKey = {
  readonly clientId: string;
  readonly label: string;
  readonly scopes: readonly string[];
  readonly json: boolean;
};

export type Keys = {
  create(key: NewKey): Promise<void>;
  /** @param clientId null: all clients */
  list(clientId: string | null, json: boolean): Promise<void>;
  revoke(keyId: string, json: boolean): Promise<void>;
};

/**
 * Manages the API keys of clients. Each action prints its result.
 *
 * @throws CommandError for an unknown or deleted client, or a key that cannot be revoked.
 */
export const createKeys = (deps: { store: ClientStore; print: Print; now: () => Date }): Keys => {
  const { store, print, now } = deps;

  const requireClient = async (clientId: string): Promise<void> => {
    const client = await store.findClient(clientId);
    if (client !== null && !client.deleted) return;
    const state = client === null ? `there is no client ${clientId}` : `the client ${clientId} is deleted`;
    throw new CommandError(`${state}: make it with \`export-ops clients create ${clientId}\``);
  };

  return {
    create: async ({ clientId, label, scopes, json }) => {
      await requireClient(clientId);
      const { key, hash } = createKey();
      const keyId = `key_${randomBytes(8).toString("hex")}`;
      const createdAt = now().toISOString();
      await store.addKey(hash, { keyId, clientId, label, scopes, revoked: false, createdAt });
      if (json) {
        return print(
          renderJson({ key, key_id: keyId, client_id: clientId, scopes: [...scopes], created_at: createdAt }),
        );
      }
      print(key);
      print(`${keyId} of the client ${clientId}; the key is not stored and is not shown again`);
    },
    list: async (clientId, json) => {
      if (clientId !== null && (await store.findClient(clientId)) === null) {
        throw new CommandError(
          `there is no client ${clientId}: \`export-ops clients list\` shows those that exist`,
        );
      }
      const keys = (await store.listKeys(clientId)).map((key) => ({
        key_id: key.keyId,
        client_id: key.clientId,
        state: key.revoked ? "revoked" : "active",
        label: key.label,
        scopes: key.scopes,
        created_at: key.createdAt,
      }));
      if (json) return print(renderJson(keys));
      const rows = keys.map((key) => [
        key.key_id,
        key.client_id,
        key.state,
        key.scopes.join(",") || "-",
        key.created_at,
        key.label,
      ]);
      print(renderTable(["KEY", "CLIENT", "STATE", "SCOPES", "CREATED", "LABEL"], rows));
    },
    revoke: async (keyId, json) => {
      if (!(await store.revokeKey(keyId))) {
        throw new CommandError(`there is no active key ${keyId}: \`export-ops keys list\` shows the keys`);
      }
      if (json) return print(renderJson({ key_id: keyId, state: "revoked" }));
      print(`revoked ${keyId}; it stops working within 30 seconds`);
    },
  };
};
