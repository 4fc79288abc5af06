import {
  type JobHandler,
  retentionJob,
  type RetentionData,
  type RetentionResult,
} from "@conversation-export/queue";
import {
  type ClientStore,
  groupsOfCutoffs,
  RETENTION_TABLES,
  type RetentionStore,
} from "@conversation-export/warehouse";
import { ServiceError } from "@conversation-export/runtime";
import { agreedNow } from "../process/agreed-now.ts";

const DAY_MS = 86_400_000;

/** The next run finds what one that died left. */
export const createRetention = (deps: {
  readonly clients: Pick<ClientStore, "listClients">;
  readonly store: Pick<RetentionStore, "expired" | "serverTime">;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly onErased: (table: string, rows: number) => void;
}): JobHandler<RetentionData, RetentionResult> => {
  const { clients, store, now, onErased } = deps;

  return {
    type: retentionJob,
    run: async ({ data, signal, log, progress }) => {
      const { clientId, dryRun } = data;
      const known = await clients.listClients();
      if (clientId !== null && !known.some((client) => client.clientId === clientId)) {
        throw new ServiceError("unknown_client", `there is no client ${clientId}`);
      }
      // So that a wrong clock does not erase young records.
      const at = await agreedNow({ now, serverTime: store.serverTime });
      const cutoffs = known.flatMap((client) => {
        if (client.retentionDays === null || (clientId !== null && client.clientId !== clientId)) return [];
        // Back to before 1970 keeps everything.
        const before = Math.max(0, at - client.retentionDays * DAY_MS);
        return [{ clientId: client.clientId, days: client.retentionDays, before }];
      });
      const result: RetentionResult = {
        dryRun,
        clients: cutoffs.map((one) => ({ ...one, before: new Date(one.before).toISOString() })),
        tables: [],
      };
      if (cutoffs.length === 0) return result;
      const tables = RETENTION_TABLES.map((table) => ({
        table,
        rows: 0,
        rowsDropped: 0,
        byClient: new Array<{ clientId: string; rows: number }>(),
      }));
      const groups = groupsOfCutoffs(cutoffs);
      const total = groups.length * tables.length;
      for (const [at, group] of groups.entries()) {
        const expired = await store.expired(
          group.map((one) => ({ clientId: one.clientId, before: one.before * 1000 })),
          signal,
        );
        try {
          for (const [place, sums] of tables.entries()) {
            const { table } = sums;
            await progress({ done: at * tables.length + place, total, unit: "tables", note: table });
            signal.throwIfAborted();
            const byClient = await expired.count(table);
            const rows = byClient.reduce((sum, one) => sum + one.rows, 0);
            const { dropped } = dryRun || rows === 0 ? { dropped: 0 } : await expired.erase(table);
            if (!dryRun && rows > 0) {
              onErased(table, rows);
              log.info({ table, rows, dropped }, "expired rows erased");
            }
            sums.rows += rows;
            sums.rowsDropped += dropped;
            sums.byClient.push(...byClient);
          }
        } finally {
          // A stopped run has little time.
          const end = AbortSignal.timeout(signal.aborted ? 10_000 : 600_000);
          await expired
            .end(end)
            .catch((error: unknown) => log.warn({ err: error }, "keys of the run are left"));
        }
      }
      await progress({ done: total, total, unit: "tables" });
      return { ...result, tables };
    },
  };
};
