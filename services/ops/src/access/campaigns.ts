import type { CampaignRow, CampaignStore, ClientStore } from "@conversation-export/warehouse";
import { CommandError } from "../explain/explain.ts";
import { requireActive, requireKnown } from "./registered-client.ts";
import { type Print, renderJson, renderTable } from "../output/print.ts";

type NewCampaign = {
  readonly clientId: string;
  readonly key: string;
  /** Tags; empty: any language. */
  readonly languages: readonly string[];
  readonly json: boolean;
};

const view = (campaign: CampaignRow) => ({
  client_id: campaign.clientId,
  campaign_key: campaign.key,
  state: campaign.deleted ? "deleted" : "active",
  languages: campaign.languages,
  created_at: campaign.createdAt,
});

/** @throws CommandError */
export const createCampaigns = (deps: {
  store: CampaignStore;
  clients: Pick<ClientStore, "findClient">;
  print: Print;
  now: () => Date;
}) => {
  const { store, clients, print, now } = deps;

  return {
    create: async ({ clientId, key, languages, json }: NewCampaign): Promise<void> => {
      await requireActive(clients, clientId);
      const found = await store.find(clientId, key);
      if (found !== null && !found.deleted) {
        throw new CommandError(
          `the campaign ${key} of the client ${clientId} exists already: delete it first to change its languages`,
        );
      }
      const createdAt = found?.createdAt ?? now().toISOString();
      const campaign: CampaignRow = { clientId, key, languages, deleted: false, createdAt };
      await store.save(campaign);
      if (json) print(renderJson(view(campaign)));
      else print(`created the campaign ${key} of the client ${clientId}`);
    },
    /** `clientId` null: all clients. */
    list: async (clientId: string | null, json: boolean): Promise<void> => {
      await requireKnown(clients, clientId);
      const campaigns = (await store.list(clientId)).map(view);
      if (json) return print(renderJson(campaigns));
      const rows = campaigns.map((row) => [
        row.client_id,
        row.campaign_key,
        row.state,
        row.languages.join(",") || "any",
        row.created_at,
      ]);
      print(renderTable(["CLIENT", "CAMPAIGN", "STATE", "LANGUAGES", "CREATED"], rows));
    },
    delete: async (clientId: string, key: string, json: boolean): Promise<void> => {
      const found = await store.find(clientId, key);
      if (found === null || found.deleted) {
        throw new CommandError(
          found === null
            ? `the client ${clientId} has no campaign ${key}: \`export-ops campaigns list\` shows those that exist`
            : `the campaign ${key} of the client ${clientId} is deleted already`,
        );
      }
      const campaign = { ...found, deleted: true };
      await store.save(campaign);
      if (json) return print(renderJson(view(campaign)));
      print(`deleted the campaign ${key} of the client ${clientId}; it stops within 5 seconds`);
    },
  };
};
