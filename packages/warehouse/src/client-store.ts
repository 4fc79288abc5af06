import type { ClickHouseClient } from "@clickhouse/client";
import { parseRateWindows, type RateWindow } from "@conversation-export/domain";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

export type LinkBounds = "same" | "advancing";

/** How the column says it; empty stands for the default of the configuration. */
export function linkBoundsOf(text: string): LinkBounds | null {
  return text === "same" || text === "advancing" ? text : null;
}

/** Windows by name of the limit. A text that is none is passed over, so that the configured windows hold. */
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
  /** Name of the limit to windows such as `10/1s,100/1m`; a name that is missing has the configured windows. */
  readonly rateLimits: Readonly<Record<string, string>>;
  /** Days after which records are deleted, counted from their creation; null: they are kept. */
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
};

/** Clients and their API keys, for the operations command. Throws `WarehouseError`. */
export type ClientStore = {
  findClient(clientId: string): Promise<ClientRow | null>;
  listClients(): Promise<ClientRow[]>;
  saveClient(client: ClientRow): Promise<void>;
  listKeys(clientId: string | null): Promise<KeyRow[]>;
  /** `hash`: SHA-256 of the key, 64 lower-case hex digits. */
  addKey(hash: string, key: KeyRow): Promise<void>;
  /** false: there is no such key that is not revoked already. */
  revokeKey(keyId: string): Promise<boolean>;
  close(): Promise<void>;
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
  key_hash: string;
  version: string | number;
  key_id: string;
  client_id: string;
  label: string;
  scopes: string[];
  revoked: boolean | number;
  created_at: string;
};

/** A DateTime64 of a JSON row, which is UTC, as ISO 8601. */
export function toIso(text: string): string {
  return `${text.replace(" ", "T")}Z`;
}

function fromIso(text: string): string {
  return text.replace("T", " ").replace("Z", "");
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
  };
}

/** `now` gives milliseconds since the epoch: a later change of a client or key wins by it. */
export function createClientStore(
  deps: WarehouseAccess & {
    readonly now: () => number;
  },
): ClientStore {
  const client: ClickHouseClient = connect(deps);

  async function select<T>(query: string, parameters: Record<string, string> = {}): Promise<T[]> {
    try {
      const result = await client.query({ query, query_params: parameters, format: "JSONEachRow" });
      return await result.json<T>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  // A change must win over what it changes, also when the clock of this machine is behind.
  async function insert(table: string, row: Record<string, unknown>, replaced = 0): Promise<void> {
    try {
      await client.insert({
        table,
        values: [{ ...row, version: Math.max(deps.now(), replaced + 1) }],
        format: "JSONEachRow",
        clickhouse_settings: { async_insert: 0 },
      });
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  return {
    async findClient(clientId) {
      const rows = await select<StoredClient>("SELECT * FROM clients FINAL WHERE client_id = {id:String}", {
        id: clientId,
      });
      return rows[0] === undefined ? null : toClient(rows[0]);
    },
    async listClients() {
      return (await select<StoredClient>("SELECT * FROM clients FINAL ORDER BY client_id")).map(toClient);
    },
    async saveClient(row) {
      const [stored] = await select<{ version: string }>(
        "SELECT toString(max(version)) AS version FROM clients WHERE client_id = {id:String}",
        { id: row.clientId },
      );
      await insert(
        "clients",
        {
          client_id: row.clientId,
          link_bounds: row.linkBounds ?? "",
          rate_limits: row.rateLimits,
          retention_days: row.retentionDays ?? 0,
          deleted: row.deleted,
          created_at: fromIso(row.createdAt),
        },
        Number(stored?.version ?? 0),
      );
    },
    async listKeys(clientId) {
      const filter = clientId === null ? "" : "WHERE client_id = {id:String}";
      const rows = await select<StoredKey>(
        `SELECT * FROM api_keys FINAL ${filter} ORDER BY client_id, created_at, key_id`,
        clientId === null ? {} : { id: clientId },
      );
      return rows.map(toKey);
    },
    async addKey(hash, key) {
      await insert("api_keys", {
        key_hash: hash,
        key_id: key.keyId,
        client_id: key.clientId,
        label: key.label,
        scopes: key.scopes,
        revoked: key.revoked,
        created_at: fromIso(key.createdAt),
      });
    },
    async revokeKey(keyId) {
      const rows = await select<StoredKey>(
        "SELECT * FROM api_keys FINAL WHERE key_id = {id:String} AND NOT revoked",
        { id: keyId },
      );
      const [row] = rows;
      if (row === undefined) return false;
      const { key_hash, key_id, client_id, label, scopes, created_at } = row;
      await insert(
        "api_keys",
        { key_hash, key_id, client_id, label, scopes, created_at, revoked: true },
        Number(row.version),
      );
      return true;
    },
    close: () => client.close(),
  };
}
