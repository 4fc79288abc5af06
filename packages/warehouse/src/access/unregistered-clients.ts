import type { Session } from "../session/session.ts";

/** Within 30 days. */
export type UnregisteredClient = { readonly clientId: string; readonly records: number };

/** @throws WarehouseError from every method */
export type UnregisteredClientStore = {
  list(): Promise<UnregisteredClient[]>;
  registered(): Promise<ReadonlySet<string>>;
  /** `day`: YYYY-MM-DD. */
  add(day: string, clients: readonly UnregisteredClient[]): Promise<void>;
};

const TIMEOUT_MS = 10_000;
/** A producer could send any number. */
const MAX_READ = 10_000;

export const createUnregisteredClientStore = (deps: {
  readonly session: Session;
}): UnregisteredClientStore => {
  const session = deps.session.with({ timeoutMs: TIMEOUT_MS });

  const registered = async (): Promise<ReadonlySet<string>> => {
    const rows = await session.rows<{ client_id: string }>(
      "clients.registered",
      "SELECT client_id FROM clients FINAL WHERE NOT deleted",
    );
    return new Set(rows.map(({ client_id: id }) => id));
  };

  return {
    registered,
    list: async () => {
      const rows = await session.rows<{ client_id: string; total: string }>(
        "unregistered_clients.list",
        `SELECT client_id, toString(sum(records)) AS total FROM unregistered_clients
          GROUP BY client_id ORDER BY sum(records) DESC, client_id LIMIT ${MAX_READ}`,
      );
      if (rows.length === 0) return [];
      const known = await registered();
      return rows
        .filter(({ client_id: id }) => !known.has(id))
        .map(({ client_id: clientId, total }) => ({ clientId, records: Number(total) }));
    },
    add: async (day, clients) => {
      const rows = clients.map(({ clientId, records }) => ({ client_id: clientId, day, records }));
      await session.insert("unregistered_clients.add", { table: "unregistered_clients", rows });
    },
  };
};
