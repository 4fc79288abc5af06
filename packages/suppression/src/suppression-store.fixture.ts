import type { Suppression, SuppressionKey, SuppressionReads } from "@conversation-export/domain";
import { secondsOf } from "./suppression-index.ts";
import { type KeyHash, keyHash } from "./suppression-key.ts";

const nameOf = ({ clientId, kind, value }: SuppressionKey): string => `${kind} ${clientId} ${value}`;

export const storeOf = (rows: () => readonly Suppression[], hash: KeyHash = keyHash): SuppressionReads => ({
  clients: async () => {
    const clients = Map.groupBy(rows(), ({ clientId }) => clientId);
    return Array.from(clients, ([clientId, own]) => ({
      clientId,
      rows: own.length,
      latest: Math.max(...own.map(({ createdBefore }) => createdBefore)),
    }));
  },
  hashes: async (take, { clients }) =>
    rows()
      .filter(({ clientId }) => clients.includes(clientId))
      .every((row) => take(...hash(row), secondsOf(row.createdBefore))),
  lookUp: async (keys) => {
    const latest = new Map<string, number>();
    for (const row of rows())
      latest.set(nameOf(row), Math.max(row.createdBefore, latest.get(nameOf(row)) ?? 0));
    return keys.map((key) => latest.get(nameOf(key)) ?? 0);
  },
  secondsByHash: async (keys) =>
    keys.map((key) => {
      const [high, low] = hash(key);
      const same = rows().filter((row) => hash(row)[0] === high && hash(row)[1] === low);
      return Math.max(0, ...same.map(({ createdBefore }) => secondsOf(createdBefore)));
    }),
});
