import type { WriterLeases } from "@conversation-export/queue";
import type { SuppressionGate } from "@conversation-export/suppression";

/** Whose the runs with keys in ClickHouse are: processes, named by their leases as writers. */
export type RunHolders = {
  readonly own: string;
  /**
   * Holders that are alive; null while leases may be missing, as after a loss of Redis.
   * @throws ServiceError `redis_unavailable`
   */
  readonly alive: () => Promise<ReadonlySet<string> | null>;
};

export const createRunHolders = (deps: {
  readonly gate: Pick<SuppressionGate, "leaseId">;
  readonly leases: Pick<WriterLeases, "list">;
}): RunHolders => ({
  own: deps.gate.leaseId,
  alive: async () => {
    const { leases, complete } = await deps.leases.list();
    return complete ? new Set(leases.map(({ id }) => id)) : null;
  },
});
