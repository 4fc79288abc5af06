import type {
  ExportRecord,
  Micros,
  SuppressedClient,
  Suppression,
  SuppressionKey,
} from "@conversation-export/domain";
import { createKeyTable } from "./key-table.ts";
import type { KeyHash, KeysOf } from "./suppression-key.ts";

/** A client is held with all its suppressions, or looked up: then any record that is old enough is suspected. */
export type SuppressionIndex = {
  /** Without room its client is looked up from now on. */
  add(row: Suppression): void;
  /** False: no room. */
  addHash(high: number, low: number, seconds: number): boolean;
  noteClients(clients: readonly SuppressedClient[]): void;
  /** Until `hold` all are looked up. */
  clear(): void;
  /** Except `lacking` clients. */
  hold(clientIds: readonly string[]): void;
  lookedUp(): string[];
  mayDrop(record: ExportRecord): boolean;
  /** Seconds; 0: none, or looked up. */
  heldAt(key: SuppressionKey): number;
  size(): number;
  bytes(): number;
};

export const secondsOf = (instant: Micros): number => Math.ceil(instant / 1_000_000);

export const createSuppressionIndex = (deps: {
  readonly max: number;
  readonly keysOf: KeysOf;
  readonly hash: KeyHash;
}): SuppressionIndex => {
  const { keysOf, hash } = deps;
  const table = createKeyTable(deps.max);
  /** No room for one of their suppressions. */
  const lacking = new Set<string>();
  const clients = new Map<string, { latest: Micros; isHeld: boolean }>();
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
      // Leaves the room to the others.
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
      // Nearly all live traffic is newer than the last erasure.
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
