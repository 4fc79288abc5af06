/** Rows of which some may be superseded, looked at for every record of a page. */
export type LookAhead = {
  /** How many rows a page of so many records of this client looks at first. */
  candidates(clientId: string, pageSize: number): number;
  /** Takes over that a page of `records`, with more behind it, needed so many rows. */
  learn(clientId: string, records: number, needed: number): void;
};

/** Share of rows beyond those that the page before needed. */
const MARGIN = 1.15;
/** Small pages differ more from each other. */
const SPARE = 200;
/** A page behind rows that changed more often than that looks further by itself. */
const MAX_PER_RECORD = 50;
/** A smaller page tells too little about the next one. */
const MIN_RECORDS = 100;
/** Clients that are remembered; of more, the one that was seen longest ago is forgotten. */
const MAX_CLIENTS = 10_000;

/**
 * Looks as far as the page before of the same client needed. What is superseded differs between clients by how often
 * their records change, and falls to nothing where compaction has removed it; a fixed measure is wrong for most.
 * `initial`: rows for each record of a client that is not known yet.
 */
export function createLookAhead({ initial }: { readonly initial: number }): LookAhead {
  const perRecord = new Map<string, number>();
  return {
    candidates(clientId, pageSize) {
      return Math.ceil((pageSize + 1) * (perRecord.get(clientId) ?? initial) * MARGIN) + SPARE;
    },
    learn(clientId, records, needed) {
      if (records < MIN_RECORDS) return;
      perRecord.delete(clientId);
      perRecord.set(clientId, Math.min(Math.max(1, needed / records), MAX_PER_RECORD));
      const [oldest] = perRecord.keys();
      if (perRecord.size > MAX_CLIENTS && oldest !== undefined) perRecord.delete(oldest);
    },
  };
}
