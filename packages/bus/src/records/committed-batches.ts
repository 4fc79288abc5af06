import type { RecordBatch } from "./record-batch.ts";

/** A transaction that was aborted; several of one producer may be in one response. */
export type AbortedTransaction = { readonly producerId: bigint; readonly firstOffset: number };

/**
 * The batches without control records and aborted ones; a batch belongs to one transaction, so it counts as a
 * whole.
 */
export const committedBatches = (
  batches: readonly RecordBatch[],
  aborted: readonly AbortedTransaction[],
): ReadonlySet<RecordBatch> => {
  const ahead = aborted.toSorted((one, other) => other.firstOffset - one.firstOffset);
  const aborting = new Set<bigint>();
  const committed = new Set<RecordBatch>();
  for (const batch of batches) {
    for (let next = ahead.at(-1); next !== undefined && next.firstOffset <= batch.lastOffset; ) {
      aborting.add(next.producerId);
      ahead.pop();
      next = ahead.at(-1);
    }
    if (batch.isControl) {
      // It ends the open transaction of its producer, whatever its records say, so they are not read.
      aborting.delete(batch.producerId);
    } else if (!batch.isTransactional || !aborting.has(batch.producerId)) {
      committed.add(batch);
    }
  }
  return committed;
};
