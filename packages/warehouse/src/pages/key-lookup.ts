import type { Session } from "../session/session.ts";
import { linkBoundsOf, rateLimitsOf } from "../access/client-store.ts";
import type { ApiClient } from "./page.ts";

// In ms: servers cannot read the DateTime64 that they write into statements for others.
const VALID =
  "NOT revoked AND toUnixTimestamp64Milli(expires_at) NOT BETWEEN 1 AND toUnixTimestamp64Milli(now64(3))";

// The right side of a join is read whole: without the condition, all clients.
const KEY_AND_CLIENT = `SELECT k.key_id AS key_id, k.client_id AS client_id, k.scopes AS scopes,
    c.client_id = '' OR c.deleted AS deleted, c.link_bounds AS link_bounds, c.rate_limits AS rate_limits
  FROM (SELECT * FROM api_keys FINAL WHERE key_hash = {hash:String}) AS k
  LEFT JOIN (
    SELECT client_id, deleted, link_bounds, rate_limits FROM clients FINAL
    WHERE client_id GLOBAL IN (SELECT client_id FROM api_keys WHERE key_hash = {hash:String})
  ) AS c ON c.client_id = k.client_id
  WHERE ${VALID}`;

const VALID_KEYS = `SELECT key_hash FROM api_keys FINAL WHERE ${VALID} ORDER BY created_at DESC LIMIT {most:UInt32}`;

type StoredKeyAndClient = {
  readonly key_id: string;
  readonly client_id: string;
  readonly scopes: string[];
  readonly deleted: boolean | number;
  readonly link_bounds: string;
  readonly rate_limits: Record<string, string>;
};

function toApiClient(row: StoredKeyAndClient): ApiClient {
  return {
    clientId: row.client_id,
    keyId: row.key_id,
    scopes: row.scopes,
    clientDeleted: Boolean(row.deleted),
    linkBounds: linkBoundsOf(row.link_bounds),
    rateLimits: rateLimitsOf(row.rate_limits),
  };
}

export const findKey = async (session: Session, hash: string): Promise<ApiClient | null> => {
  const [row] = await session.rows<StoredKeyAndClient>("keys.look_up", KEY_AND_CLIENT, {
    parameters: { hash },
  });
  return row === undefined ? null : toApiClient(row);
};

export const validKeys = async (session: Session, most: number): Promise<string[]> => {
  const rows = await session.rows<{ readonly key_hash: string }>("keys.valid", VALID_KEYS, {
    parameters: { most },
  });
  return rows.map(({ key_hash }) => key_hash);
};
