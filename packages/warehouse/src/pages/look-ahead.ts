import { LRUCache } from "lru-cache";

/** Estimates how many rows, superseded ones included, a page must look at to find its records. */
export type LookAhead = {
  /** How many rows a page of `pageSize` records of this client looks at first. */
  candidates(clientId: string, pageSize: number): number;
  /**
   * Learns that a page of `records` records, which was not the last one, needed `needed` rows; nothing of what are
   * no positive numbers.
   */
  learn(clientId: string, records: number, needed: number): void;
};

/** Factor on the rows per record that the previous page needed. */
const MARGIN = 1.15;
/**
 * Upper limit of the estimate. A page that needs more rows per record repeats its query with more candidates.
 */
const MAX_PER_RECORD = 50;
/** Smaller pages say too little about the next one to learn from. */
const MIN_RECORDS = 100;
/** Clients to remember; beyond that, the one updated longest ago is forgotten. */
const MAX_CLIENTS = 10_000;

/**
 * Estimates from the previous page of the same client. A fixed factor would be wrong for most clients: the
 * share of superseded rows depends on how often a client's records change and on what compaction has already
 * removed.
 *
 * @param deps.initial rows per record for a client without a previous page
 * @param deps.spare extra rows for small pages, which vary more
 */
export function createLookAhead(deps: { readonly initial: number; readonly spare: number }): LookAhead {
  const { initial, spare } = deps;
  const perRecord = new LRUCache<string, number>({ max: MAX_CLIENTS });
  return {
    candidates(clientId, pageSize) {
      return Math.ceil((pageSize + 1) * (perRecord.peek(clientId) ?? initial) * MARGIN) + spare;
    },
    learn(clientId, records, needed) {
      // Neither holds for NaN.
      if (!(records >= MIN_RECORDS && records < Infinity && needed > 0 && needed < Infinity)) return;
      perRecord.set(clientId, Math.min(Math.max(1, needed / records), MAX_PER_RECORD));
    },
  };
}
