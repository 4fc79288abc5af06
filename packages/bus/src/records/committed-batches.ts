import type { RecordBatch } from "./record-batch.ts";

export type AbortedTransaction = { readonly producerId: bigint; readonly firstOffset: number };

/** A batch belongs to one transaction. */
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
      // It ends the transaction whatever its records say.
      aborting.delete(batch.producerId);
    } else if (!batch.isTransactional || !aborting.has(batch.producerId)) {
      committed.add(batch);
    }
  }
  return committed;
};
