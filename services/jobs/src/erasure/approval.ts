import { randomUUID } from "node:crypto";
import type { Logger } from "@conversation-export/runtime";
import type { ErasureStore, RequestCompletion } from "@conversation-export/warehouse";

/** A request that reaches more than both of them of its client waits for an operator. */
export type ApprovalRule = {
  /** Of the client's records. */
  readonly percent: number;
  readonly records: number;
};

/**
 * The screening of the requests of one job, which may begin several runs until it knows which to carry out.
 */
export type Screening = {
  /** Whether the job has to leave a request to a later one. */
  isLeftOut(requestId: string): boolean;
  /**
   * Lets the large requests of a run wait, whose keys must be collected, and leaves out those that it could
   * not look at. Returns how many; both 0: the run may begin. Its probes end with the run: their ids begin
   * with its id.
   */
  hold(runId: string): Promise<{ readonly held: number; readonly leftOut: number }>;
};

/** Finds requests that would erase so much that a person has to look at them. */
export type Approval = (signal: AbortSignal) => Screening;

/** Probes for one client and job: they find a large request among any number, and others do not wait long. */
const MAX_PROBES = 32;
/** Ids of one query: they are sent in its URL. */
const MAX_IDS = 500;

/** Two halves, or more pieces of as many ids as a query takes. */
const piecesOf = (ids: readonly string[]): (readonly string[])[] => {
  const size = Math.min(Math.ceil(ids.length / 2), MAX_IDS);
  const count = ids.length === 0 ? 0 : Math.ceil(ids.length / size);
  return Array.from({ length: count }, (_, at) => ids.slice(at * size, (at + 1) * size));
};

export const createApproval = (deps: {
  readonly requests: Pick<RequestCompletion, "unscreened" | "hold">;
  readonly store: Pick<ErasureStore, "reached" | "storedRecords" | "probe" | "collect">;
  readonly rule: ApprovalRule;
  readonly log: Logger;
}): Approval => {
  const { requests, store, rule, log } = deps;

  /** The number of records above which a request of this client waits. */
  const limitOf = async (clientId: string): Promise<number> =>
    Math.max(rule.records, Math.floor((rule.percent / 100) * (await store.storedRecords(clientId))));

  return (signal) => {
    const probes = new Map<string, number>();
    const small = new Set<string>();
    const leftOut = new Set<string>();

    /** Whether some requests of a run reach more than `limit` together. */
    const isLarge = async (
      run: { readonly runId: string; readonly clientId: string; readonly limit: number },
      ids: readonly string[],
    ): Promise<boolean> => {
      signal.throwIfAborted();
      probes.set(run.clientId, (probes.get(run.clientId) ?? 0) + 1);
      const probeId = `${run.runId}-${randomUUID()}`;
      await store.probe(run.runId, probeId, run.clientId, ids);
      await store.collect(probeId);
      return (await store.reached(probeId, run.limit)).length > 0;
    };

    /** Holds the large ones among the requests of a client. Returns how many. */
    const holdOf = async (runId: string, clientId: string, limit: number): Promise<number> => {
      let held = 0;
      const ids = await requests.unscreened(runId, clientId);
      // What all reach together is known and says nothing of each: the halves tell, in few steps when few are
      // large.
      const groups = piecesOf(ids.filter((id) => !small.has(id)));
      for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
        const [first = ""] = group;
        if ((probes.get(clientId) ?? 0) >= MAX_PROBES) for (const id of group) leftOut.add(id);
        else if (!(await isLarge({ runId, clientId, limit }, group))) for (const id of group) small.add(id);
        else if (group.length > 1) groups.push(...piecesOf(group));
        else {
          // At once, so that a job that dies has not looked in vain.
          await requests.hold(clientId, first);
          held += 1;
        }
      }
      return held;
    };

    return {
      isLeftOut: (requestId) => leftOut.has(requestId),
      hold: async (runId) => {
        let held = 0;
        const before = leftOut.size;
        for (const { clientId, records } of await store.reached(runId, rule.records)) {
          const limit = await limitOf(clientId);
          if (records > limit) held += await holdOf(runId, clientId, limit);
        }
        const left = leftOut.size - before;
        if (held > 0) log.warn({ requests: held }, "requests for erasure await the approval of an operator");
        if (left > 0) log.warn({ requests: left }, "requests for erasure are left to the next run");
        return { held, leftOut: left };
      },
    };
  };
};
