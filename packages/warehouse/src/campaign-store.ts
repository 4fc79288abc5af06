import type { ClickHouseClient } from "@clickhouse/client";
import { toIso } from "./client-store.ts";
import { connect, type WarehouseAccess } from "./connection.ts";
import { toWarehouseError } from "./warehouse-error.ts";

/** A campaign that a client may trigger. */
export type CampaignRow = {
  readonly clientId: string;
  readonly key: string;
  /** Language tags; an empty list stands for any language. */
  readonly languages: readonly string[];
  readonly deleted: boolean;
  /** ISO 8601 */
  readonly createdAt: string;
};

/** Campaigns. Throws `WarehouseError`. */
export type CampaignStore = {
  find(clientId: string, key: string): Promise<CampaignRow | null>;
  /** null: of every client. Deleted ones too. */
  list(clientId: string | null): Promise<CampaignRow[]>;
  save(campaign: CampaignRow): Promise<void>;
  close(): Promise<void>;
};

type StoredCampaign = {
  client_id: string;
  campaign_key: string;
  languages: string[];
  deleted: boolean | number;
  created_at: string;
};

const toCampaign = (row: StoredCampaign): CampaignRow => ({
  clientId: row.client_id,
  key: row.campaign_key,
  languages: row.languages,
  deleted: Boolean(row.deleted),
  createdAt: toIso(row.created_at),
});

/**
 * `url`: `http://user:password@host:port/database`; looking up needs the right to read alone. `now` gives milliseconds
 * since the epoch: a later change of a campaign wins by it.
 */
export function createCampaignStore(
  deps: WarehouseAccess & {
    readonly now: () => number;
  },
): CampaignStore {
  const client: ClickHouseClient = connect({
    ...deps,
    maxOpenConnections: 4,
    requestTimeoutMs: 10_000,
  });

  async function select<T>(query: string, parameters: Record<string, string>): Promise<T[]> {
    try {
      const result = await client.query({ query, query_params: parameters, format: "JSONEachRow" });
      return await result.json<T>();
    } catch (error) {
      throw toWarehouseError(error);
    }
  }

  return {
    async find(clientId, key) {
      const [row] = await select<StoredCampaign>(
        "SELECT * FROM campaigns FINAL WHERE client_id = {client:String} AND campaign_key = {key:String}",
        { client: clientId, key },
      );
      return row === undefined ? null : toCampaign(row);
    },
    async list(clientId) {
      const rows = await select<StoredCampaign>(
        `SELECT * FROM campaigns FINAL ${clientId === null ? "" : "WHERE client_id = {client:String}"}
          ORDER BY client_id, campaign_key`,
        clientId === null ? {} : { client: clientId },
      );
      return rows.map(toCampaign);
    },
    async save(campaign) {
      const { clientId, key } = campaign;
      const [stored] = await select<{ version: string }>(
        `SELECT toString(max(version)) AS version FROM campaigns
          WHERE client_id = {client:String} AND campaign_key = {key:String}`,
        { client: clientId, key },
      );
      try {
        await client.insert({
          table: "campaigns",
          values: [
            {
              client_id: clientId,
              campaign_key: key,
              // A change must win over what it changes, also when the clock of this machine is behind.
              version: Math.max(deps.now(), Number(stored?.version ?? 0) + 1),
              languages: campaign.languages,
              deleted: campaign.deleted,
              created_at: campaign.createdAt,
            },
          ],
          format: "JSONEachRow",
          clickhouse_settings: { async_insert: 0 },
        });
      } catch (error) {
        throw toWarehouseError(error);
      }
    },
    close: () => client.close(),
  };
}
