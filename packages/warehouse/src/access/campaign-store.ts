import { toIso } from "./client-store.ts";
import type { Session } from "../session/session.ts";

export type CampaignRow = {
  readonly clientId: string;
  readonly key: string;
  /** Empty: any. */
  readonly languages: readonly string[];
  readonly deleted: boolean;
  /** ISO 8601 */
  readonly createdAt: string;
};

/** @throws WarehouseError from every method */
export type CampaignStore = {
  find(clientId: string, key: string): Promise<CampaignRow | null>;
  /** Deleted ones too; null: all clients'. */
  list(clientId: string | null): Promise<CampaignRow[]>;
  save(campaign: CampaignRow): Promise<void>;
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

/** `now`: ms. */
export function createCampaignStore(deps: {
  readonly session: Session;
  readonly now: () => number;
}): CampaignStore {
  const session = deps.session.with({ timeoutMs: 10_000 });

  return {
    async find(clientId, key) {
      const [row] = await session.rows<StoredCampaign>(
        "campaigns.find",
        "SELECT * FROM campaigns FINAL WHERE client_id = {client:String} AND campaign_key = {key:String}",
        { parameters: { client: clientId, key } },
      );
      return row === undefined ? null : toCampaign(row);
    },
    async list(clientId) {
      const rows = await session.rows<StoredCampaign>(
        "campaigns.list",
        `SELECT * FROM campaigns FINAL ${clientId === null ? "" : "WHERE client_id = {client:String}"}
          ORDER BY client_id, campaign_key`,
        { parameters: clientId === null ? {} : { client: clientId } },
      );
      return rows.map(toCampaign);
    },
    async save(campaign) {
      const { clientId, key } = campaign;
      const [stored] = await session.rows<{ version: string }>(
        "campaigns.version",
        `SELECT toString(max(version)) AS version FROM campaigns
          WHERE client_id = {client:String} AND campaign_key = {key:String}`,
        { parameters: { client: clientId, key } },
      );
      const row = {
        client_id: clientId,
        campaign_key: key,
        // Must exceed the replaced version though this clock may be behind.
        version: Math.max(deps.now(), Number(stored?.version ?? 0) + 1),
        languages: campaign.languages,
        deleted: campaign.deleted,
        created_at: campaign.createdAt,
      };
      await session.insert("campaigns.save", { table: "campaigns", rows: [row] });
    },
  };
}
