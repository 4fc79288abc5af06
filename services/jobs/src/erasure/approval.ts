import type { Logger } from "@conversation-export/runtime";
import type { ErasureRun, ErasureStore, RequestCompletion } from "@conversation-export/warehouse";

/** Requests that reach more than both wait for an operator. */
export type ApprovalRule = {
  readonly percent: number;
  readonly records: number;
};

/** Returns how many it holds; the run's keys must be collected before. */
export type Approval = (run: ErasureRun, clientId: string) => Promise<number>;

export const createApproval = (deps: {
  readonly requests: Pick<RequestCompletion, "reaching" | "hold">;
  readonly store: Pick<ErasureStore, "storedRecords">;
  readonly rule: ApprovalRule;
  readonly log: Logger;
}): Approval => {
  const { requests, store, rule, log } = deps;
  return async (run, clientId) => {
    const large = await requests.reaching(run, clientId, rule.records);
    if (large.length === 0) return 0;
    const share = Math.floor((rule.percent / 100) * (await store.storedRecords(clientId)));
    const held = large.filter(({ records }) => records > share);
    for (const { requestId } of held) await requests.hold(clientId, requestId);
    if (held.length > 0)
      log.warn({ requests: held.length }, "requests for erasure await the approval of an operator");
    return held.length;
  };
};
