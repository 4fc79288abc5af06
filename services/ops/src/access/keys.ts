import { randomBytes } from "node:crypto";
import { createKey } from "@conversation-export/runtime";
import type { ClientStore, KeyRow } from "@conversation-export/warehouse";
import { CommandError } from "../explain/explain.ts";
import { intoFile, secretManifest } from "./key-file.ts";
import { requireActive, requireKnown } from "./registered-client.ts";
import { type Print, renderJson, renderTable } from "../output/print.ts";

type NewKey = {
  readonly clientId: string;
  readonly label: string;
  readonly scopes: readonly string[];
  /** ISO 8601; null: never. */
  readonly expiresAt: string | null;
  /** File for the key; null: standard output. */
  readonly out: string | null;
  /** Of a Kubernetes Secret to write; null: only the key. */
  readonly secret: string | null;
  readonly json: boolean;
};

const DAY_MS = 86_400_000;

/** @throws CommandError */
export const createKeys = (deps: {
  store: ClientStore;
  /** Epoch ms by key id; null: unknown. */
  lastUses: () => Promise<ReadonlyMap<string, number> | null>;
  print: Print;
  now: () => Date;
}) => {
  const { store, lastUses, print, now } = deps;

  const stateOf = ({ revoked, expiresAt }: KeyRow): string => {
    if (revoked) return "revoked";
    return expiresAt !== null && Date.parse(expiresAt) <= now().getTime() ? "expired" : "active";
  };

  return {
    create: async ({ clientId, label, scopes, expiresAt, out, secret, json }: NewKey): Promise<void> => {
      await requireActive(store, clientId);
      const { key, hash } = createKey();
      const keyId = `key_${randomBytes(8).toString("hex")}`;
      const createdAt = now().toISOString();
      const text = secret === null ? `${key}\n` : secretManifest(secret, key);
      const add = async (): Promise<string> => {
        await store.addKey(hash, { keyId, clientId, label, scopes, revoked: false, createdAt, expiresAt });
        return text;
      };
      if (out === null) await add();
      else await intoFile(out, add);
      if (json) {
        const view = { key_id: keyId, client_id: clientId, scopes: [...scopes], created_at: createdAt };
        const place = out === null ? { key } : { file: out };
        return print(renderJson({ ...place, ...view, expires_at: expiresAt }));
      }
      if (out === null) print(text.trimEnd());
      const end = expiresAt === null ? "it does not expire" : `it expires at ${expiresAt}`;
      const where = out === null ? "is not stored and is not shown again" : `is in ${out} only`;
      if (secret === null || out !== null)
        print(`${keyId} of the client ${clientId}; the key ${where}; ${end}`);
    },
    /** `clientId` null: all clients. */
    list: async (clientId: string | null, json: boolean): Promise<void> => {
      await requireKnown(store, clientId);
      const uses = await lastUses();
      const usedAt = (keyId: string): string | null => {
        const ms = uses?.get(keyId);
        return ms === undefined ? null : new Date(ms).toISOString();
      };
      const keys = (await store.listKeys(clientId)).map((key) => ({
        key_id: key.keyId,
        client_id: key.clientId,
        state: stateOf(key),
        label: key.label,
        scopes: key.scopes,
        created_at: key.createdAt,
        age_days: Math.floor((now().getTime() - Date.parse(key.createdAt)) / DAY_MS),
        expires_at: key.expiresAt,
        ...(uses !== null && { last_used_at: usedAt(key.keyId) }),
      }));
      if (json) return print(renderJson(keys));
      const rows = keys.map((key) => [
        key.key_id,
        key.client_id,
        key.state,
        key.scopes.join(",") || "-",
        key.created_at,
        `${key.age_days} days`,
        key.expires_at ?? "-",
        usedAt(key.key_id) ?? (uses === null ? "?" : "-"),
        key.label,
      ]);
      const header = ["KEY", "CLIENT", "STATE", "SCOPES", "CREATED", "AGE", "EXPIRES", "LAST USED", "LABEL"];
      print(renderTable(header, rows));
    },
    revoke: async (keyId: string, json: boolean): Promise<void> => {
      if (!(await store.revokeKey(keyId))) {
        throw new CommandError(`there is no active key ${keyId}: \`export-ops keys list\` shows the keys`);
      }
      if (json) return print(renderJson({ key_id: keyId, state: "revoked" }));
      print(`revoked ${keyId}; it stops working within 30 seconds`);
    },
  };
};
