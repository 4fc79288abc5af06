import { randomBytes } from "node:crypto";
import { createKey } from "@conversation-export/runtime";
import type { ClientStore, KeyRow } from "@conversation-export/warehouse";
import type { JsonOption } from "../commands/command-deps.ts";
import { CommandError } from "../explain/explain.ts";
import { intoFile, secretManifest } from "./key-file.ts";
import { type OfClient, requireActive, requireKnown } from "./registered-client.ts";
import { type Print, renderJson, renderTable } from "../output/print.ts";

export type NewKey = {
  readonly client: string;
  readonly label: string;
  readonly scopes: readonly string[];
  /** ISO 8601; absent: never. */
  readonly expires?: string;
  /** File for the key; absent: standard output. */
  readonly out?: string;
  /** Of a Kubernetes Secret to write; absent: only the key. */
  readonly secret?: string;
} & JsonOption;

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
    create: async (wanted: NewKey): Promise<void> => {
      const { client: clientId, label, scopes, expires: expiresAt = null, out, secret, json } = wanted;
      await requireActive(store, clientId);
      const { key, hash } = createKey();
      const keyId = `key_${randomBytes(8).toString("hex")}`;
      const createdAt = now().toISOString();
      const text = secret === undefined ? `${key}\n` : secretManifest(secret, key);
      const add = async (): Promise<string> => {
        await store.addKey(hash, { keyId, clientId, label, scopes, revoked: false, createdAt, expiresAt });
        return text;
      };
      if (out === undefined) await add();
      else await intoFile(out, add);
      if (json === true) {
        const view = { key_id: keyId, client_id: clientId, scopes: [...scopes], created_at: createdAt };
        const place = out === undefined ? { key } : { file: out };
        return print(renderJson({ ...place, ...view, expires_at: expiresAt }));
      }
      if (out === undefined) print(text.trimEnd());
      const end = expiresAt === null ? "it does not expire" : `it expires at ${expiresAt}`;
      const where = out === undefined ? "is not stored and is not shown again" : `is in ${out} only`;
      if (secret === undefined || out !== undefined)
        print(`${keyId} of the client ${clientId}; the key ${where}; ${end}`);
    },
    list: async ({ client, json }: OfClient): Promise<void> => {
      const clientId = client ?? null;
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
      if (json === true) return print(renderJson(keys));
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
    revoke: async (keyId: string, { json }: JsonOption): Promise<void> => {
      if (!(await store.revokeKey(keyId))) {
        throw new CommandError(`there is no active key ${keyId}: \`export-ops keys list\` shows the keys`);
      }
      if (json === true) return print(renderJson({ key_id: keyId, state: "revoked" }));
      print(`revoked ${keyId}; it stops working within 30 seconds`);
    },
  };
};
