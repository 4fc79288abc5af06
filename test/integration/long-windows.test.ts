import { text } from "node:stream/consumers";
import {
  createMovedDates,
  createReader,
  type Page,
  type PageQuery,
  type Reader,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noteDates } from "../system/record-dates.ts";
import { conversation, DAY, DAY_0 } from "../warehouse/records.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

const CLIENT = "acme";
const MONTHS = 40;
const IN_A_MONTH = 100;
/** Of all statements of a page; reading all months of the window would exceed it. */
const MOST_PARTS = 30;
const LATE = 20;
const SINCE = DAY_0 - 3_000 * DAY;
const TO = DAY_0 + 3_000 * DAY;
const PAGE = 20;

const dates = [
  ...Array.from(
    { length: MONTHS * IN_A_MONTH },
    (_, n) => DAY_0 - 2_000 * DAY + Math.floor((n * 30 * DAY) / IN_A_MONTH),
  ),
  ...Array.from({ length: LATE }, (_, n) => DAY_0 + n * 30 * DAY),
];
const ids = dates.map((_, n) => `c-${String(n).padStart(5, "0")}`);

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
  for (let from = 0; from < dates.length; from += IN_A_MONTH) {
    const month = dates.slice(from, from + IN_A_MONTH);
    await warehouse.write(
      month.map((date, n) =>
        conversation({ client: CLIENT, time: date + 2 }, ids[from + n] ?? "", date, date + 1),
      ),
      date(from),
    );
  }
  await warehouse.sql(noteDates("conversations"));
});
afterAll(() => warehouse?.stop());

const at = (micros: string): string => `fromUnixTimestamp64Micro(toInt64(${micros}), 'UTC')`;

const date = (index: number): number => dates[index] ?? 0;
const idOf = (record: string): string => (JSON.parse(record) as { _id: string })._id;

const countedDuring = async (event: string, work: () => Promise<unknown>): Promise<number> => {
  const count = async (): Promise<number> =>
    Number(await warehouse.sql(`SELECT sum(value) FROM system.events WHERE event = '${event}'`));
  const before = await count();
  await work();
  return (await count()) - before;
};

const READS: readonly [string, (query: PageQuery) => Promise<Page>][] = [
  ["creation", (query) => warehouse.reader.conversationsByCreation(query)],
  ["update", (query) => warehouse.reader.conversationsByUpdate(query)],
];

it.each(READS)("a page by %s begins in few of the months of its window", async (_, read) => {
  const query = { clientId: CLIENT, since: date(10 * IN_A_MONTH), to: TO, pageSize: PAGE, wholeTies: false };
  const parts = await countedDuring("SelectedParts", async () => {
    const page = await read(query);
    await text(page.records);
    expect(page.end().rows).toBe(PAGE);
  });
  expect(parts).toBeLessThan(MOST_PARTS);
});

it.each(READS)("pages by %s find everything before, in and behind gaps of years", async (_, read) => {
  const { records } = await walk(read, {
    clientId: CLIENT,
    since: SINCE,
    to: TO,
    pageSize: 500,
    wholeTies: false,
  });
  expect(records.map(idOf)).toEqual(ids);
});

it("changes come from few months as well, and all of them", async () => {
  const stableUpTo = TO;
  const read = (after: { date: number; id: string }) =>
    warehouse.reader.changes({ clientId: CLIENT, kind: "conversation", after, stableUpTo, pageSize: PAGE });
  const parts = await countedDuring("SelectedParts", async () =>
    text((await read({ date: date(10 * IN_A_MONTH), id: "" })).records),
  );
  expect(parts).toBeLessThan(MOST_PARTS);

  const found: string[] = [];
  for (let after = { date: 0, id: "" }; ; ) {
    const page = await warehouse.reader.changes({
      clientId: CLIENT,
      kind: "conversation",
      after,
      stableUpTo,
      pageSize: 500,
    });
    const records = await text(page.records);
    found.push(...Array.from(records.matchAll(/"_id":"(c-[0-9]+)"/g), ([, id]) => id ?? ""));
    const { isLast, next } = page.end();
    if (isLast) break;
    after = next;
  }
  expect(found.toSorted()).toEqual(ids);
});

it("a small page by update does not read the texts of all records of its instant", async () => {
  const records = 20_000;
  const textBytes = 2_000;
  const key = `'tied' AS client_id, ${at(`${DAY_0} + number`)} AS date_created, ${at(String(DAY_0 + DAY))} AS date_updated,
    toString(number) AS conversation_id, 1 AS version`;
  const texts = `concat('{"_id":"', toString(number), '","text":"', repeat('x', ${textBytes}), '","handoffs":'), '}'`;
  const columns = "client_id, date_created, date_updated, conversation_id, version";
  await warehouse.sql(`INSERT INTO conversation_updates (${columns}) SELECT ${key} FROM numbers(${records})`);
  await warehouse.sql(
    `INSERT INTO conversations (${columns}, head, tail) SELECT ${key}, ${texts} FROM numbers(${records})`,
  );
  await warehouse.sql(noteDates("conversations"));
  const bytes = await countedDuring("SelectedBytes", async () => {
    const page = await warehouse.reader.conversationsByUpdate({
      clientId: "tied",
      since: DAY_0,
      to: TO,
      pageSize: 10,
      wholeTies: false,
    });
    await text(page.records);
    expect(page.end().rows).toBe(10);
  });
  expect(bytes).toBeLessThan((records * textBytes) / 2);
});

describe("of many records that lie close together", () => {
  const MANY = 50_000;
  let reader: Reader;
  beforeAll(async () => {
    const instant = at(`${DAY_0} + number * 1000000`);
    // Two parts, since a single one is never read ahead.
    for (const part of [0, 1]) {
      const from = `FROM (SELECT number * 2 + ${part} AS number FROM numbers(${MANY / 2}))`;
      await warehouse.sql(`INSERT INTO conversation_updates (client_id, date_created, date_updated, conversation_id, version)
        SELECT 'busy', ${instant}, ${instant}, toString(number), 1 ${from}`);
      await warehouse.sql(`INSERT INTO conversations (client_id, date_created, date_updated, conversation_id, version, head, tail)
        SELECT 'busy', ${instant}, ${instant}, toString(number), 1, concat('{"_id":"', toString(number), '","handoffs":'), '}' ${from}`);
      await warehouse.sql(`INSERT INTO changes (client_id, kind, stored_at, id, date_created)
        SELECT 'busy', 'conversation', ${instant}, toString(number), ${instant} ${from}`);
    }
    await warehouse.sql(noteDates("conversations"));
    await createMovedDates({ session: warehouse.session("jobs") }).note(Date.now() * 1_000);
    // The shared reader caches for a while that no dates are recorded.
    reader = createReader({ session: warehouse.session("reader"), lookups: warehouse.session("lookup") });
  });
  const window = { clientId: "busy", since: DAY_0, to: TO, pageSize: PAGE, wholeTies: false };

  it.each([
    ["creation", () => reader.conversationsByCreation(window)] as const,
    ["update", () => reader.conversationsByUpdate(window)] as const,
    [
      "change",
      () =>
        reader.changes({
          clientId: "busy",
          kind: "conversation",
          after: { date: DAY_0, id: "" },
          stableUpTo: TO,
          pageSize: PAGE,
        }),
    ] as const,
  ])("a small page by %s reads few", async (_, read) => {
    const rows = await countedDuring("SelectedRows", async () => {
      const page = await read();
      await text(page.records);
      expect(page.end().rows).toBe(PAGE);
    });
    expect(rows).toBeLessThan(MANY / 3);
  });
});
