import type { ExportRecord } from "@conversation-export/domain";
import type { UnregisteredClientStore } from "@conversation-export/warehouse";

/** @throws WarehouseError */
export const createNoteClients =
  (deps: {
    readonly store: Pick<UnregisteredClientStore, "add" | "registered">;
    /** Epoch milliseconds. */
    readonly now: () => number;
  }) =>
  async (records: readonly ExportRecord[]): Promise<void> => {
    if (records.length === 0) return;
    const registered = await deps.store.registered();
    const unknown = records.filter(({ clientId }) => !registered.has(clientId));
    if (unknown.length === 0) return;
    const clients = Array.from(
      Map.groupBy(unknown, ({ clientId }) => clientId),
      ([clientId, of]) => ({ clientId, records: of.length }),
    );
    await deps.store.add(new Date(deps.now()).toISOString().slice(0, 10), clients);
  };
