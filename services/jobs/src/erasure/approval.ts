import { randomUUID } from "node:crypto";
import type { Logger } from "@conversation-export/runtime";
import type { ErasureStore, RequestCompletion } from "@conversation-export/warehouse";

/** A request that reaches more than both of them of its client waits for an operator. */
export type ApprovalRule = {
  /** Of the client's records. */
  readonly percent: number;
  readonly records: number;
};

/** Finds requests that would erase so much that a person has to look at them. */
export type Approval = {
  /** Lets the large requests of a run wait, whose keys must be collected. Returns how many. */
  hold(runId: string, signal: AbortSignal): Promise<number>;
};

export const createApproval = (deps: {
  readonly requests: Pick<RequestCompletion, "unscreened" | "hold">;
  readonly store: Pick<ErasureStore, "reached" | "storedRecords" | "probe" | "collect" | "end">;
  readonly rule: ApprovalRule;
  readonly log: Logger;
}): Approval => {
  const { requests, store, rule, log } = deps;

  /** Those of the requests that reach more than `limit` each. */
  const largeOf = async (
    run: {
      readonly runId: string;
      readonly clientId: string;
      readonly limit: number;
      readonly signal: AbortSignal;
    },
    ids: readonly string[],
  ): Promise<string[]> => {
    if (ids.length === 0) return [];
    run.signal.throwIfAborted();
    const probeId = `${run.runId}-${randomUUID()}`;
    await store.probe(run.runId, probeId, run.clientId, ids);
    await store.collect(probeId);
    const large = await store.reached(probeId, run.limit);
    await store.end(probeId, run.signal, false);
    if (large.length === 0) return [];
    if (ids.length === 1) return [...ids];
    // What all reach together says nothing of each: the halves tell, in few steps when few are large.
    const middle = Math.ceil(ids.length / 2);
    return [...(await largeOf(run, ids.slice(0, middle))), ...(await largeOf(run, ids.slice(middle)))];
  };

  return {
    hold: async (runId, signal) => {
      let held = 0;
      for (const { clientId, records } of await store.reached(runId, rule.records)) {
        const share = Math.floor((rule.percent / 100) * (await store.storedRecords(clientId)));
        const limit = Math.max(rule.records, share);
        if (records <= limit) continue;
        const ids = await requests.unscreened(runId, clientId);
        const large = await largeOf({ runId, clientId, limit, signal }, ids);
        if (large.length === 0) continue;
        await requests.hold(clientId, large);
        held += large.length;
      }
      if (held > 0) log.warn({ requests: held }, "requests for erasure await the approval of an operator");
      return held;
    },
  };
};
