import type { CampaignRow, CampaignStore, ClientStore } from "@conversation-export/warehouse";
import type { JsonOption } from "../commands/command-deps.ts";
import { CommandError } from "../explain/explain.ts";
import { type OfClient, requireActive, requireKnown } from "./registered-client.ts";
import { type Print, renderJson, renderTable } from "../output/print.ts";

export type NewCampaign = {
  readonly client: string;
  /** Tags; empty: any language. */
  readonly languages: readonly string[];
} & JsonOption;

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
    create: async (key: string, { client: clientId, languages, json }: NewCampaign): Promise<void> => {
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
      if (json === true) return print(renderJson(view(campaign)));
      print(`created the campaign ${key} of the client ${clientId}`);
    },
    list: async ({ client, json }: OfClient): Promise<void> => {
      const clientId = client ?? null;
      await requireKnown(clients, clientId);
      const campaigns = (await store.list(clientId)).map(view);
      if (json === true) return print(renderJson(campaigns));
      const rows = campaigns.map((row) => [
        row.client_id,
        row.campaign_key,
        row.state,
        row.languages.join(",") || "any",
        row.created_at,
      ]);
      print(renderTable(["CLIENT", "CAMPAIGN", "STATE", "LANGUAGES", "CREATED"], rows));
    },
    delete: async (clientId: string, key: string, { json }: JsonOption): Promise<void> => {
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
      if (json === true) return print(renderJson(view(campaign)));
      print(`deleted the campaign ${key} of the client ${clientId}; it stops within 5 seconds`);
    },
  };
};
