import type { PageQuery } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, test } from "vitest";
import { conversation, DAY, DAY_0, SECOND } from "../warehouse/records.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

// What docs/export-api.md, "Pages", promises for records that change while a reader walks through them.

const COUNT = 30;
const PAGE = 10;
const LATER = { time: DAY_0 + 10 * DAY };
const created = (index: number): number => DAY_0 + index * SECOND;
const updated = (index: number): number => DAY_0 + DAY + index * SECOND;
const idOf = (index: number): string => `c-${String(index).padStart(2, "0")}`;

let warehouse: Warehouse;

beforeAll(async () => {
  warehouse = await startWarehouse();
});
afterAll(() => warehouse?.stop());

const prepare = (client: string): Promise<void> =>
  warehouse.write(
    Array.from({ length: COUNT }, (_, index) =>
      conversation({ client, time: DAY_0 + DAY }, idOf(index), created(index), updated(index)),
    ),
  );

/** Walks through the window; after the first page the change is stored. Gives `id browser` in order. */
const seen = async (
  client: string,
  list: "conversationsByCreation" | "conversationsByUpdate",
  change: () => Promise<void>,
): Promise<string[]> => {
  const query = { clientId: client, since: DAY_0, to: DAY_0 + 5 * DAY, pageSize: PAGE, wholeTies: false };
  let changed = false;
  const { records } = await walk(
    (wanted: PageQuery) => warehouse.reader[list](wanted),
    query,
    async () => {
      if (!changed) await change();
      changed = true;
    },
  );
  return records.map((text) => {
    const { _id, browser } = JSON.parse(text) as { _id: string; browser: string | null };
    return `${_id} ${browser ?? "first"}`;
  });
};

const export2 = (client: string, index: number, date_updated: number | null): Promise<void> => {
  const record = conversation({ client, ...LATER }, idOf(index), created(index), date_updated ?? 0, {
    browser: "second",
    ...(date_updated === null && { date_updated: null }),
  });
  return warehouse.write([record]);
};
const all = (changes: Readonly<Record<number, string>> = {}): string[] =>
  Array.from({ length: COUNT }, (_, index) => `${idOf(index)} ${changes[index] ?? "first"}`);

test("by creation each record comes once, whatever its date_updated does", async () => {
  await prepare("w1");
  const walked = await seen("w1", "conversationsByCreation", async () => {
    await export2("w1", 3, updated(50));
    await export2("w1", 20, DAY_0);
    await export2("w1", 25, null);
  });
  expect(walked).toEqual(all({ 20: "second", 25: "second" }));
});

test("by update a record that moves on comes again in its newer version", async () => {
  await prepare("w2");
  const walked = await seen("w2", "conversationsByUpdate", () => export2("w2", 3, updated(50)));
  expect(walked).toEqual([...all(), `${idOf(3)} second`]);
});

test("by update a record that keeps its date comes once, as it is", async () => {
  await prepare("w3");
  const walked = await seen("w3", "conversationsByUpdate", () => export2("w3", 20, updated(20)));
  expect(walked).toEqual(all({ 20: "second" }));
});

test.each([
  ["moves back", updated(0) - 1],
  ["is left out, and becomes the date_created", null],
])("by update a record whose date_updated %s behind the reader is missed, and no other", async (_, date) => {
  const client = date === null ? "w5" : "w4";
  await prepare(client);
  const walked = await seen(client, "conversationsByUpdate", () => export2(client, 20, date));
  expect(walked).toEqual(all().filter((one) => !one.startsWith(idOf(20))));
  const again = await seen(client, "conversationsByUpdate", () => Promise.resolve());
  expect(again.toSorted()).toEqual(all({ 20: "second" }).toSorted());
});
