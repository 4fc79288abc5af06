import type { CampaignStore, ClientStore } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { createCampaigns } from "./campaigns.ts";

it("lists the campaigns of a client, also of a deleted one, and refuses one that never was", async () => {
  const printed: string[] = [];
  const campaigns = createCampaigns({
    store: { list: () => Promise.resolve([]) } as unknown as CampaignStore,
    clients: {
      findClient: (id) => Promise.resolve(id === "gone" ? { clientId: id, deleted: true } : null),
    } as Pick<ClientStore, "findClient">,
    print: (text) => printed.push(text),
    now: () => new Date(),
  });
  await campaigns.list({ client: "gone", json: true });
  await campaigns.list({ json: true });
  expect(printed).toEqual(["[]", "[]"]);
  await expect(campaigns.list({ client: "nobody", json: true })).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringContaining("there is no client nobody"),
  });
});
