import { expect, it } from "vitest";
import type { TableInsert } from "./batch.ts";
import { insertHalves } from "./insert-halves.ts";
import { WarehouseError } from "../session/warehouse-error.ts";

const batch = {
  inserts: (from: number, to: number): TableInsert[] => [
    { table: `${from}-${to}`, columns: [], rows: to - from, body: Buffer.alloc(0) },
  ],
};

it.each([[[]], [[0]], [[3, 4]], [[6]], [[0, 1, 2, 3, 4, 5, 6]]])("finds %j alone", async (bad) => {
  const written: string[] = [];
  const refused = await insertHalves(batch, 7, ({ table }) => {
    const [from = 0, to = 0] = table.split("-").map(Number);
    if (bad.some((index) => index >= from && index < to)) {
      return Promise.reject(new WarehouseError("warehouse_refused_data", "VIOLATED_CONSTRAINT", false, null));
    }
    written.push(table);
    return Promise.resolve();
  });
  expect(refused).toEqual(bad);
  const rows = written.reduce((sum, table) => {
    const [from = 0, to = 0] = table.split("-").map(Number);
    return sum + to - from;
  }, 0);
  expect(rows).toBe(7 - bad.length);
});

it("halves nothing when the warehouse is away", async () => {
  let calls = 0;
  const away = new WarehouseError("warehouse_unavailable", "ECONNREFUSED", true, null);
  const writing = insertHalves(batch, 4, () => {
    calls += 1;
    return Promise.reject(away);
  });
  await expect(writing).rejects.toBe(away);
  expect(calls).toBe(1);
});
