import { LINK_BOUNDS, type LinkBounds, parseRateWindows, type RateWindow } from "@conversation-export/domain";
import type { Session, StatementName } from "../session/session.ts";

/** null: the configured default. */
export function linkBoundsOf(text: string): LinkBounds | null {
  return LINK_BOUNDS.find((bounds) => bounds === text) ?? null;
}

/** Instead of invalid windows the configured ones apply. */
export function rateLimitsOf(
  stored: Readonly<Record<string, string>>,
): Readonly<Record<string, readonly RateWindow[]>> {
  const limits: [string, readonly RateWindow[]][] = [];
  for (const [name, text] of Object.entries(stored)) {
    const windows = parseRateWindows(text);
    if (windows !== undefined) limits.push([name, windows]);
  }
  return Object.fromEntries(limits);
}

export type ClientRow = {
  readonly clientId: string;
  readonly linkBounds: LinkBounds | null;
  /** Such as `10/1s,100/1m`; the configured ones apply to missing names. */
  readonly rateLimits: Readonly<Record<string, string>>;
  /** null: for ever. */
  readonly retentionDays: number | null;
  readonly deleted: boolean;
  /** ISO 8601 */
  readonly createdAt: string;
};

export type KeyRow = {
  readonly keyId: string;
  readonly clientId: string;
  readonly label: string;
  readonly scopes: readonly string[];
  readonly revoked: boolean;
  /** ISO 8601 */
  readonly createdAt: string;
  /** ISO 8601; null: never. */
  readonly expiresAt: string | null;
};

/** @throws WarehouseError from every method */
export type ClientStore = {
  findClient(clientId: string): Promise<ClientRow | null>;
  listClients(): Promise<ClientRow[]>;
  saveClient(client: ClientRow): Promise<void>;
  listKeys(clientId: string | null): Promise<KeyRow[]>;
  /** `hash`: SHA-256, 64 lower-case hex digits. */
  addKey(hash: string, key: KeyRow): Promise<void>;
  /** False: unknown, or already revoked. */
  revokeKey(keyId: string): Promise<boolean>;
};

type StoredClient = {
  client_id: string;
  link_bounds: string;
  rate_limits: Record<string, string>;
  retention_days: number;
  deleted: boolean | number;
  created_at: string;
};
type StoredKey = {
  version: number;
  key_id: string;
  client_id: string;
  label: string;
  scopes: string[];
  revoked: boolean | number;
  created_at: string;
  expires_at: string;
};

const NEVER = "1970-01-01 00:00:00.000";

export function toIso(text: string): string {
  return `${text.replace(" ", "T")}Z`;
}

function toClient(row: StoredClient): ClientRow {
  return {
    clientId: row.client_id,
    linkBounds: linkBoundsOf(row.link_bounds),
    rateLimits: row.rate_limits,
    retentionDays: row.retention_days === 0 ? null : row.retention_days,
    deleted: Boolean(row.deleted),
    createdAt: toIso(row.created_at),
  };
}

function toKey(row: StoredKey): KeyRow {
  return {
    keyId: row.key_id,
    clientId: row.client_id,
    label: row.label,
    scopes: row.scopes,
    revoked: Boolean(row.revoked),
    createdAt: toIso(row.created_at),
    expiresAt: row.expires_at === NEVER ? null : toIso(row.expires_at),
  };
}

/** `now`: ms. */
export function createClientStore(deps: {
  readonly session: Session;
  readonly now: () => number;
}): ClientStore {
  const { session } = deps;

  // Must exceed the replaced version though this clock may be behind.
  const insert = (
    name: StatementName,
    table: string,
    row: Record<string, unknown>,
    replaced = 0,
  ): Promise<void> => {
    const rows = [{ ...row, version: Math.max(deps.now(), replaced + 1) }];
    return session.insert(name, { table, rows });
  };

  return {
    async findClient(clientId) {
      const rows = await session.rows<StoredClient>(
        "clients.find",
        "SELECT * FROM clients FINAL WHERE client_id = {id:String}",
        { parameters: { id: clientId } },
      );
      return rows[0] === undefined ? null : toClient(rows[0]);
    },
    async listClients() {
      const query = "SELECT * FROM clients FINAL ORDER BY client_id";
      return (await session.rows<StoredClient>("clients.list", query)).map(toClient);
    },
    async saveClient(row) {
      const [stored] = await session.rows<{ version: string }>(
        "clients.version",
        "SELECT toString(max(version)) AS version FROM clients WHERE client_id = {id:String}",
        { parameters: { id: row.clientId } },
      );
      await insert(
        "clients.save",
        "clients",
        {
          client_id: row.clientId,
          link_bounds: row.linkBounds ?? "",
          rate_limits: row.rateLimits,
          retention_days: row.retentionDays ?? 0,
          deleted: row.deleted,
          created_at: row.createdAt,
        },
        Number(stored?.version ?? 0),
      );
    },
    async listKeys(clientId) {
      const filter = clientId === null ? "" : "WHERE client_id = {id:String}";
      const rows = await session.rows<StoredKey>(
        "keys.list",
        `SELECT * FROM api_keys FINAL ${filter} ORDER BY client_id, created_at, key_id`,
        { parameters: clientId === null ? {} : { id: clientId } },
      );
      return rows.map(toKey);
    },
    async addKey(hash, key) {
      await insert("keys.add", "api_keys", {
        key_hash: hash,
        key_id: key.keyId,
        client_id: key.clientId,
        label: key.label,
        scopes: key.scopes,
        revoked: key.revoked,
        created_at: key.createdAt,
        expires_at: key.expiresAt ?? NEVER,
      });
    },
    async revokeKey(keyId) {
      const rows = await session.rows<StoredKey>(
        "keys.find",
        "SELECT * FROM api_keys FINAL WHERE key_id = {id:String} AND NOT revoked",
        { parameters: { id: keyId } },
      );
      const [row] = rows;
      if (row === undefined) return false;
      await insert("keys.revoke", "api_keys", { ...row, revoked: true }, row.version);
      return true;
    },
  };
}
