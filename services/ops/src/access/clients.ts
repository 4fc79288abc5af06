import { formatRateWindows, type LinkBounds, type RateWindow } from "@conversation-export/domain";
import type { ClientRow, ClientStore, LimitName } from "@conversation-export/warehouse";
import type { JsonOption } from "../commands/command-deps.ts";
import { CommandError } from "../explain/explain.ts";
import { type Print, renderJson, renderTable } from "../output/print.ts";

/** null: as export-api is configured; absent: unchanged. */
export type ClientSettings = {
  readonly linkBounds?: LinkBounds | null;
  readonly rateLimits?: Readonly<Partial<Record<LimitName, readonly RateWindow[] | null>>>;
  /** null: keep all records. */
  readonly retentionDays?: number | null;
};

const WHEN_ADVANCING =
  "if its job takes created_since or updated_since out of next_page_uri instead of following it, it needs " +
  "`--link-bounds advancing`: with `same` it reads its first page for ever (docs/coming-from-elsewhere.md)";

const view = (client: ClientRow) => ({
  client_id: client.clientId,
  state: client.deleted ? "deleted" : "active",
  link_bounds: client.linkBounds,
  rate_limits: client.rateLimits,
  retention_days: client.retentionDays,
  created_at: client.createdAt,
});

const withSettings = (client: ClientRow, settings: ClientSettings): ClientRow => {
  const { linkBounds, rateLimits = {}, retentionDays } = settings;
  const limits = new Map(Object.entries(client.rateLimits));
  for (const [name, windows] of Object.entries(rateLimits)) {
    if (windows === null) limits.delete(name);
    else limits.set(name, formatRateWindows(windows));
  }
  return {
    ...client,
    linkBounds: linkBounds === undefined ? client.linkBounds : linkBounds,
    retentionDays: retentionDays === undefined ? client.retentionDays : retentionDays,
    rateLimits: Object.fromEntries([...limits].sort(([one], [other]) => (one < other ? -1 : 1))),
  };
};

const limitsText = (client: Pick<ClientRow, "rateLimits">): string =>
  Object.entries(client.rateLimits)
    .map(([name, windows]) => `${name}=${windows}`)
    .join(" ") || "-";

const retentionText = ({ retentionDays }: Pick<ClientRow, "retentionDays">): string =>
  retentionDays === null ? "-" : `${retentionDays} days`;

/** @throws CommandError */
export const createClients = (deps: { store: ClientStore; print: Print; now: () => Date }) => {
  const { store, print, now } = deps;

  const requireActive = async (clientId: string, deleted: string): Promise<ClientRow> => {
    const found = await store.findClient(clientId);
    if (found !== null && !found.deleted) return found;
    throw new CommandError(
      found === null
        ? `there is no client ${clientId}: \`export-ops clients list\` shows those that exist`
        : `the client ${clientId} is ${deleted}`,
    );
  };

  return {
    create: async (clientId: string, settings: ClientSettings, { json }: JsonOption): Promise<void> => {
      const found = await store.findClient(clientId);
      if (found !== null && !found.deleted) {
        throw new CommandError(
          `the client ${clientId} exists already: make a key with \`export-ops keys create --client ${clientId}\``,
        );
      }
      const createdAt = found?.createdAt ?? now().toISOString();
      const client = withSettings(
        { clientId, linkBounds: null, rateLimits: {}, retentionDays: null, deleted: false, createdAt },
        settings,
      );
      await store.saveClient(client);
      if (json === true) return print(renderJson(view(client)));
      if (found === null) print(`created the client ${clientId}`);
      else print(`restored the client ${clientId}; its keys that are not revoked work again`);
      if (client.linkBounds !== "advancing") print(WHEN_ADVANCING);
    },
    set: async (clientId: string, settings: ClientSettings, { json }: JsonOption): Promise<void> => {
      const found = await requireActive(
        clientId,
        `deleted: bring it back with \`export-ops clients create ${clientId}\``,
      );
      const client = withSettings(found, settings);
      await store.saveClient(client);
      if (json === true) return print(renderJson(view(client)));
      const { linkBounds } = client;
      print(
        `set the client ${clientId}: link bounds ${linkBounds ?? "-"}, rate limits ${limitsText(client)}, retention ${retentionText(client)}; this takes effect within 30 seconds`,
      );
    },
    list: async ({ json }: JsonOption): Promise<void> => {
      const clients = await store.listClients();
      if (json === true) return print(renderJson(clients.map(view)));
      const rows = clients.map((client) => {
        const { client_id, state, link_bounds, created_at } = view(client);
        return [client_id, state, link_bounds ?? "-", limitsText(client), retentionText(client), created_at];
      });
      print(renderTable(["CLIENT", "STATE", "LINK BOUNDS", "RATE LIMITS", "RETENTION", "CREATED"], rows));
    },
    delete: async (clientId: string, { json }: JsonOption): Promise<void> => {
      const found = await requireActive(clientId, "deleted already");
      const client = { ...found, deleted: true };
      await store.saveClient(client);
      if (json === true) return print(renderJson(view(client)));
      print(`deleted the client ${clientId}; its keys are answered with 404, its records stay`);
    },
  };
};
