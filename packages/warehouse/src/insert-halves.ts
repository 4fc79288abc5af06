import type { Batch, TableInsert } from "./batch.ts";
import { WarehouseError } from "./warehouse-error.ts";

const isRefusedData = (error: unknown): boolean =>
  error instanceof WarehouseError && error.code === "warehouse_refused_data";

/**
 * Writes the records `from` (inclusive) to `to` (exclusive) of a batch by `insert`, in halves as long as the warehouse
 * refuses some for their data. Gives the indexes of those that it refuses alone; of halves that are written twice
 * versions make the repetition harmless. Throws what else `insert` throws.
 */
export async function insertHalves(
  batch: Pick<Batch, "inserts">,
  from: number,
  to: number,
  insert: (one: TableInsert) => Promise<void>,
): Promise<number[]> {
  try {
    for (const one of batch.inserts(from, to)) await insert(one);
    return [];
  } catch (error) {
    if (!isRefusedData(error)) throw error;
    if (to - from === 1) return [from];
    const middle = (from + to) >> 1;
    const left = await insertHalves(batch, from, middle, insert);
    return [...left, ...(await insertHalves(batch, middle, to, insert))];
  }
}
