import type { SuppressedClient, SuppressionReads } from "@conversation-export/domain";
import type { SuppressionIndex } from "./suppression-index.ts";

/** Longer than an INSERT of suppressions may run. */
const READ_AGAIN_MS = 600_000;
/** Of the memory; the next when one was too much. */
const SHARES = [1, 0.9, 0.5, 0];

const smallest = (clients: readonly SuppressedClient[], room: number): string[] => {
  const held: string[] = [];
  let left = room;
  for (const { clientId, rows } of [...clients].sort((one, other) => one.rows - other.rows)) {
    left -= rows;
    if (left < 0) break;
    held.push(clientId);
  }
  return held;
};

/** The largest clients are looked up if they do not fit. `readAt`: ms by ClickHouse's clock. */
export const createSuppressionReader = (deps: {
  readonly index: SuppressionIndex;
  readonly source: Pick<SuppressionReads, "clients" | "hashes">;
  readonly max: number;
}): ((readAt: number) => Promise<void>) => {
  const { index, source, max } = deps;
  /** ms, by ClickHouse's clock and by one that nobody sets. */
  let last: { readonly at: number; readonly elapsed: number } | null = null;

  /** null: read all, as after ClickHouse's clock was set. */
  const sinceOf = (readAt: number): number | null => {
    if (last === null) return null;
    const drift = readAt - last.at - (performance.now() - last.elapsed);
    return Math.abs(drift) > READ_AGAIN_MS / 2 ? null : last.at - READ_AGAIN_MS;
  };

  const readNew = async (since: number): Promise<boolean> => {
    const clients = await source.clients(since);
    const lookedUp = new Set(index.lookedUp());
    const held = clients.map(({ clientId }) => clientId).filter((clientId) => !lookedUp.has(clientId));
    const fit = await source.hashes(index.addHash, { since, clients: held });
    // Clients are known only once their suppressions are.
    index.noteClients(clients);
    return fit;
  };

  const readAll = async (shares: readonly number[]): Promise<void> => {
    for (const share of shares) {
      const clients = await source.clients(null);
      index.noteClients(clients);
      index.clear();
      const held = smallest(clients, max * share);
      if (!(await source.hashes(index.addHash, { since: null, clients: held }))) continue;
      index.hold(held);
      return;
    }
  };

  return async (readAt) => {
    const since = sinceOf(readAt);
    if (since === null || !(await readNew(since))) {
      last = null;
      await readAll(since === null ? SHARES : SHARES.slice(1));
    }
    last = { at: readAt, elapsed: performance.now() };
  };
};
