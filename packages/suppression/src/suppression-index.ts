import type {
  ExportRecord,
  Micros,
  SuppressedClient,
  Suppression,
  SuppressionKey,
} from "@conversation-export/domain";
import { createKeyTable } from "./key-table.ts";
import type { KeyHash, KeysOf } from "./suppression-key.ts";

/**
 * Which records may be suppressed, by hashes in memory. A client is either held, with all its suppressions,
 * or looked up: then every record that is old enough may be.
 */
export type SuppressionIndex = {
  /**
   * Adds a suppression unless its client is looked up; without room for it the client is looked up from now
   * on.
   */
  add(row: Suppression): void;
  /**
   * Adds the hash of a suppression and its instant in seconds, rounded up. false: there is no room for it.
   */
  addHash(high: number, low: number, seconds: number): boolean;
  /** Notes clients with suppressions, those that are new as held. */
  noteClients(clients: readonly SuppressedClient[]): void;
  /** Forgets all suppressions and makes all clients looked up until `hold`. */
  clear(): void;
  /** Makes these clients held, but for those of which a suppression could not be added. */
  hold(clientIds: readonly string[]): void;
  lookedUp(): string[];
  /** false: no suppression drops the record. */
  mayDrop(record: ExportRecord): boolean;
  /** The seconds that stand behind a key's hash; 0: none do, or the client is looked up. */
  heldAt(key: SuppressionKey): number;
  size(): number;
  bytes(): number;
};

/** The seconds of an instant, rounded up. */
export const secondsOf = (instant: Micros): number => Math.ceil(instant / 1_000_000);

/** @param deps.max suppressions in memory */
export const createSuppressionIndex = (deps: {
  readonly max: number;
  readonly keysOf: KeysOf;
  readonly hash: KeyHash;
}): SuppressionIndex => {
  const { keysOf, hash } = deps;
  const table = createKeyTable(deps.max);
  /** Clients with a suppression for which there was no room. */
  const lacking = new Set<string>();
  const clients = new Map<string, { latest: Micros; isHeld: boolean }>();
  /** From `clear` to `hold`: every client may be held then. */
  let isReading = false;

  const note = (clientId: string, latest: Micros): { latest: Micros; isHeld: boolean } => {
    const client = clients.get(clientId) ?? { latest, isHeld: true };
    client.latest = Math.max(client.latest, latest);
    clients.set(clientId, client);
    return client;
  };

  const heldAt = (key: SuppressionKey): number => table.get(...hash(key));

  return {
    add: (row) => {
      const client = note(row.clientId, row.createdBefore);
      // The room is for the others.
      if (!client.isHeld && !isReading) return;
      if (table.put(...hash(row), secondsOf(row.createdBefore))) return;
      lacking.add(row.clientId);
      client.isHeld = false;
    },
    addHash: table.put,
    noteClients: (list) => {
      for (const { clientId, latest } of list) note(clientId, latest);
    },
    clear: () => {
      isReading = true;
      table.clear();
      lacking.clear();
      for (const client of clients.values()) client.isHeld = false;
    },
    hold: (clientIds) => {
      isReading = false;
      for (const clientId of clientIds) {
        const client = clients.get(clientId);
        if (client !== undefined) client.isHeld = !lacking.has(clientId);
      }
    },
    lookedUp: () => [...clients].filter(([, { isHeld }]) => !isHeld).map(([clientId]) => clientId),
    mayDrop: (record) => {
      const client = clients.get(record.clientId);
      // True for nearly all live traffic, which is newer than the last erasure.
      if (client === undefined || record.dateCreated >= client.latest) return false;
      if (!client.isHeld) return true;
      for (const key of keysOf(record)) if (record.dateCreated < heldAt(key) * 1_000_000) return true;
      return false;
    },
    heldAt: (key) => (clients.get(key.clientId)?.isHeld === true ? heldAt(key) : 0),
    size: table.size,
    bytes: table.bytes,
  };
};
