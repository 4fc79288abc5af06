import type { Batch, TableInsert } from "./batch.ts";
import { WarehouseError } from "../session/warehouse-error.ts";

/** The same rows are refused again. */
export const isRefusedData = (error: unknown): boolean =>
  error instanceof WarehouseError && error.code === "warehouse_refused_data";

/** Returns the indexes of records that ClickHouse does not take, ascending; repeated rows are harmless. @throws other errors of `write` */
export async function refusedInHalves(
  from: number,
  to: number,
  write: (from: number, to: number) => Promise<void>,
): Promise<number[]> {
  try {
    await write(from, to);
    return [];
  } catch (error) {
    if (!isRefusedData(error)) throw error;
    if (to - from === 1) return [from];
    const middle = (from + to) >> 1;
    const left = await refusedInHalves(from, middle, write);
    return [...left, ...(await refusedInHalves(middle, to, write))];
  }
}

export function insertHalves(
  batch: Pick<Batch, "inserts">,
  records: number,
  insert: (one: TableInsert) => Promise<void>,
): Promise<number[]> {
  return refusedInHalves(0, records, async (from, to) => {
    for (const one of batch.inserts(from, to)) await insert(one);
  });
}
