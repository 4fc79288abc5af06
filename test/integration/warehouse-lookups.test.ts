import { once } from "node:events";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import {
  createReader,
  createSession,
  type EndUserPage,
  type EndUserQuery,
  MESSAGES_OF_CONVERSATION,
  pageStatement,
  type PagePosition,
  type PageStatement,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compareUtf8 } from "../reference/order.ts";
import { bySize } from "../system/size.ts";
import { expectPages } from "../warehouse/expected.ts";
import { errorOf } from "../warehouse/error-of.ts";
import { DAY, DAY_0, endUser } from "../warehouse/records.ts";
import { readPage, walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { noteDates } from "../system/record-dates.ts";

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
});
afterAll(() => warehouse?.stop());

async function recordsOf(page: EndUserPage): Promise<string[]> {
  const records = await readPage(page);
  expect(records).toHaveLength(page.end().rows);
  return records;
}

describe("end users", () => {
  async function list(query: EndUserQuery): Promise<{ ids: string[]; pages: number[] }> {
    const ids: string[] = [];
    const pages: number[] = [];
    let next: string | null = query.from ?? "";
    while (next !== null) {
      const page: EndUserPage = await warehouse.reader.endUsers({ ...query, from: next });
      const records = await recordsOf(page);
      const found = records.map((text) => (JSON.parse(text) as { end_user_id: string }).end_user_id);
      if (pages.length > 0) expect(found[0]).toBe(next);
      ids.push(...found);
      pages.push(found.length);
      next = page.end().next;
    }
    return { ids, pages };
  }

  const ids = ["it's", "A", "a", "b\0", "é", "ｚ", "😀", "\u{10ffff}", "%41", " ", "null", "z\n", '"', "\\N"];
  const inOrder = ids.toSorted(compareUtf8);

  beforeAll(async () => {
    const of = (client: string, time: number, id: string, externalId: string) =>
      endUser({ client, time: DAY_0 + time }, id, {
        profile: { first_name: `${time}`, system_properties: { crm: externalId, shop: `shop ${id}` } },
      });
    await warehouse.write(ids.map((id) => of("people", 2, id, `crm ${id}`)));
    await warehouse.write(ids.map((id) => of("people", 1, id, "formerly")));
    await warehouse.write([of("people", 1, "a", "crm A"), of("others", 1, "other", "crm A")]);
    await warehouse.write(["a", "b", "c"].map((id) => of("shared", 1, id, "family")));
    await warehouse.write([of("shared", 2, "b", "alone")]);
    await warehouse.write([of("shared", 3, "d", "family")]);
  });

  test("the parts are not merged", async () => {
    const parts =
      "SELECT count() FROM system.parts WHERE active AND database = currentDatabase() AND table = 'end_users'";
    expect(Number(await warehouse.sql(parts))).toBeGreaterThan(4);
  });

  test("come in the byte order of their ids, each page starting where the link says", async () => {
    for (const limit of [1, 2, 5, ids.length - 1, ids.length, 1_000]) {
      const { ids: found, pages } = await list({ clientId: "people", limit });
      expect(found).toEqual(inOrder);
      expect(pages).toEqual(
        expectPages(
          inOrder.map((_, index) => index),
          limit,
          false,
        ),
      );
    }
    expect(await list({ clientId: "nobody", limit: 10 })).toEqual({ ids: [], pages: [0] });
  });

  test("start at an id, that one included, also at one that nobody has", async () => {
    for (const [index, id] of inOrder.entries()) {
      const [at, behind] = await Promise.all([
        list({ clientId: "people", limit: 5, from: id }),
        list({ clientId: "people", limit: 5, from: `${id}\0` }),
      ]);
      expect(at.ids).toEqual(inOrder.slice(index));
      expect(behind.ids).toEqual(inOrder.slice(index + 1));
    }
    expect((await list({ clientId: "people", limit: 3, from: "\u{10ffff}\u{10ffff}" })).ids).toEqual([]);
  });

  test("the latest version is shown and alone decides which external ids a person has", async () => {
    const page = await warehouse.reader.endUsers({ clientId: "people", limit: 1_000 });
    for (const record of await recordsOf(page)) {
      expect(JSON.parse(record)).toMatchObject({ profile: { first_name: "2" } });
    }
    for (const id of ids) {
      for (const externalId of [`crm ${id}`, `shop ${id}`]) {
        expect((await list({ clientId: "people", limit: 10, externalId })).ids).toEqual([id]);
      }
    }
    expect((await list({ clientId: "people", limit: 10, externalId: "formerly" })).ids).toEqual([]);
    expect((await list({ clientId: "others", limit: 10, externalId: "crm A" })).ids).toEqual(["other"]);
  });

  test("an external id that several people have is paged, those who lost it left out", async () => {
    for (const limit of [1, 2, 3]) {
      const { ids: found, pages } = await list({ clientId: "shared", limit, externalId: "family" });
      expect(found).toEqual(["a", "c", "d"]);
      expect(pages).toEqual(expectPages([1, 2, 3], limit, false));
    }
    expect((await list({ clientId: "shared", limit: 1, from: "b", externalId: "family" })).ids).toEqual([
      "c",
      "d",
    ]);
    expect((await list({ clientId: "shared", limit: 1, externalId: "alone" })).ids).toEqual(["b"]);
  });

  test("one of many is found by an external id without reading the others", async () => {
    const rows = 200_000;
    await warehouse.sql(`INSERT INTO end_users (client_id, end_user_id, version, external_ids, record)
      SELECT 'crowd', hex(cityHash64(number)), 1, [toString(number)], concat('{"end_user_id":"', hex(cityHash64(number)), '"}') FROM numbers(${rows})`);
    const started = performance.now();
    expect((await list({ clientId: "crowd", limit: 1_000, externalId: "4711" })).ids).toHaveLength(1);
    expect(performance.now() - started).toBeLessThan(5_000);
    const granules =
      await warehouse.sql(`SELECT sum(toUInt32OrZero(extract(explain, 'Granules: (\\\\d+)/'))) FROM
      (SELECT * FROM (EXPLAIN indexes = 1 SELECT end_user_id FROM end_users FINAL WHERE client_id = 'crowd' AND has(external_ids, '4711')
        SETTINGS use_skip_indexes_if_final = 1, use_skip_indexes_if_final_exact_mode = 1) WHERE explain LIKE '%Granules: %/%' ORDER BY 1 LIMIT 1)`);
    expect(Number(granules)).toBeLessThan(rows / 2048 / 4);
  });
});

describe("the messages of one conversation", () => {
  const WINDOW_ROWS = bySize(400_000, 2_000_000);
  const EVERY = 40;
  const STEP = Math.floor((7 * DAY) / WINDOW_ROWS);
  const week = { since: DAY_0, to: DAY_0 + 7 * DAY };
  const idOf = (number: number): string => `m${String(number).padStart(8, "0")}`;
  // Every 40th message; numbers that end in 2,000 were corrected away, and one in 2,001 to it.
  const mine = Array.from({ length: WINDOW_ROWS }, (_, number) => number).filter(
    (number) => (number % EVERY === 0 && number % 2_000 !== 0) || number % 2_001 === 7,
  );

  beforeAll(async () => {
    const insert = (version: number, conversation: string, from: string) =>
      warehouse.sql(`INSERT INTO messages (client_id, date_created, message_id, version, uploaded_at, conversation_id, record)
        SELECT 'dense', fromUnixTimestamp64Micro(${DAY_0} + number * ${STEP}, 'UTC'), concat('m', leftPad(toString(number), 8, '0')), ${version}, now64(6),
          ${conversation}, concat('{"_id":"m', leftPad(toString(number), 8, '0'), '","v":${version},"body":"', repeat('x', 100), '"}')
        FROM ${from}`);
    await insert(2, "'other'", `(SELECT number FROM numbers(${WINDOW_ROWS}) WHERE number % 2000 = 0)`);
    await insert(1, `if(number % ${EVERY} = 0, 'big', toString(number % 200003))`, `numbers(${WINDOW_ROWS})`);
    await insert(3, "'big'", `(SELECT number FROM numbers(${WINDOW_ROWS}) WHERE number % 2001 = 7)`);
    await warehouse.sql(noteDates("messages"));
  });

  const query = (pageSize: number, conversationId = "big") => ({
    clientId: "dense",
    ...week,
    pageSize,
    wholeTies: false,
    conversationId,
  });

  test.each([1_000, 10_000])("is whole and without repeats in pages of %i", async (pageSize) => {
    const { records, pages } = await walk(warehouse.reader.messagesByCreation, query(pageSize));
    const ids = records.map((text) => (JSON.parse(text) as { _id: string })._id);
    expect(ids).toEqual(mine.map(idOf));
    expect(pages.map(({ rows }) => rows)).toEqual(expectPages(mine, pageSize, false));
  });

  async function rowsRead({ sql, parameters, settings }: PageStatement): Promise<number> {
    const url = new URL(warehouse.stack.clickhouse.url("reader"));
    const target = new URL(`/?database=${url.pathname.slice(1)}&wait_end_of_query=1`, url.origin);
    for (const [name, value] of Object.entries(parameters))
      target.searchParams.set(`param_${name}`, String(value));
    // An older server does not know them, and a newer one has these defaults.
    const {
      query_plan_optimize_lazy_final: _lazy,
      max_bytes_ratio_before_external_join: _ratio,
      ...known
    } = settings;
    for (const [name, value] of Object.entries(known)) target.searchParams.set(name, String(value));
    const answer = await fetch(target, {
      method: "POST",
      body: sql,
      headers: { "x-clickhouse-user": url.username, "x-clickhouse-key": decodeURIComponent(url.password) },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    const summary = JSON.parse(answer.headers.get("x-clickhouse-summary") ?? "{}") as { read_rows?: string };
    return Number(summary.read_rows);
  }

  const pageOf = (
    page: ReturnType<typeof query> & { after?: PagePosition },
    place: number,
    sharded: boolean,
  ): PageStatement =>
    pageStatement(
      MESSAGES_OF_CONVERSATION,
      { sharded, hasMoved: false, hasErased: false },
      {
        client: page.clientId,
        conversation: page.conversationId,
        after_date: page.after?.date ?? page.since,
        after_id: page.after?.id ?? "",
        end_date: DAY_0 + (mine[place] ?? WINDOW_ROWS) * STEP,
        end_id: idOf(mine[place] ?? 0),
        size: page.pageSize,
      },
    );

  test.each([
    ["on one server", false],
    ["on several", true],
  ])("costs what a page holds, not what the window holds, at its start, in its middle and at its end, %s", async (_, sharded) => {
    const limit = bySize(40_000, 100_000);
    for (const share of [0, 0.5, 0.97]) {
      const number = mine[Math.floor(mine.length * share)] ?? 0;
      const after = { date: DAY_0 + number * STEP, id: idOf(number) };
      const read = await rowsRead(pageOf({ ...query(100), after }, mine.indexOf(number) + 115, sharded));
      expect(read, `at ${share}`).toBeGreaterThan(100);
      expect(read, `at ${share}`).toBeLessThan(limit);
    }
    const few = await rowsRead(pageOf(query(100, "4711"), mine.length, sharded));
    expect(few).toBeLessThan(limit);
  });

  test("and of a window have separators between them, none behind the last", async () => {
    const { conversationId, ...window } = query(5);
    for (const asked of [window, { ...window, conversationId }]) {
      const commas = await readPage(await warehouse.reader.messagesByCreation(asked));
      const page = await warehouse.reader.messagesByCreation({ ...asked, separator: "\n" });
      expect(await text(page.records)).toBe(commas.join("\n"));
    }
  });
});

test("a conversation whose messages all moved away is empty, however many they were", async () => {
  const rows = 60_000;
  const insert = (version: number, conversation: string, from: number, count: number) =>
    warehouse.sql(`INSERT INTO messages (client_id, date_created, message_id, version, conversation_id, record)
      SELECT 'left', fromUnixTimestamp64Micro(${DAY_0} + number, 'UTC'), leftPad(toString(number), 8, '0'), ${version}, '${conversation}', concat('{"n":', toString(number), '}')
      FROM numbers(${from}, ${count})`);
  await insert(1, "old", 0, rows);
  await insert(2, "new", 0, rows - 1);
  await warehouse.sql(noteDates("messages"));
  const query = { clientId: "left", since: DAY_0, to: DAY_0 + DAY, pageSize: 2, wholeTies: false };
  const all = await walk(warehouse.reader.messagesByCreation, { ...query, conversationId: "old" });
  expect(all).toEqual({ records: [`{"n":${rows - 1}}`], pages: [{ rows: 1, next: null }] });
  const before = { ...query, to: DAY_0 + rows - 1, conversationId: "old" };
  expect((await walk(warehouse.reader.messagesByCreation, before)).records).toEqual([]);
});

describe("limits of the reading user", () => {
  const asReader = (sql: string): Promise<string> => warehouse.sql(sql, "reader");

  test.each([
    "max_memory_usage = 100000000000",
    "max_memory_usage = 0",
    "max_memory_usage_for_user = 0",
    "max_execution_time = 0",
    "max_execution_time = 100000",
    "max_concurrent_queries_for_user = 0",
    "max_temporary_data_on_disk_size_for_user = 0",
    "max_threads = 64",
    "readonly = 0",
  ])("it cannot choose %s", async (setting) => {
    await expect(asReader(`SELECT 1 SETTINGS ${setting}`)).rejects.toThrow(
      /SETTING_CONSTRAINT_VIOLATION|READONLY/,
    );
  });

  test("it can choose less", async () => {
    expect(await asReader("SELECT 1 SETTINGS max_memory_usage = 100000000, max_execution_time = 5")).toBe(
      "1",
    );
  });

  test.each([
    "CREATE TABLE mine (x UInt8) ENGINE = Memory",
    "KILL QUERY WHERE true",
  ])("it cannot write: %s", async (statement) => {
    await expect(asReader(statement)).rejects.toThrow(/ACCESS_DENIED|READONLY/);
  });

  test("a query over its memory fails, and a page that meets it may be tried again", async () => {
    const hungry = "SELECT length(range(toUInt64(400000000)))";
    await expect(asReader(hungry)).rejects.toThrow("MEMORY_LIMIT_EXCEEDED");
    const session = warehouse.session("reader").with({ settings: { max_memory_usage: "2000000" } });
    const reader = createReader({ session, lookups: session });
    const window = {
      clientId: "dense",
      since: DAY_0,
      to: DAY_0 + 7 * DAY,
      pageSize: 10_000,
      wholeTies: false,
    };
    expect(await errorOf(reader.messagesByCreation(window))).toMatchObject({
      code: "warehouse_unavailable",
      causeName: "MEMORY_LIMIT_EXCEEDED",
      retryable: true,
    });
  });

  test("its profile bounds time, memory and concurrency", async () => {
    const limits = await asReader(
      "SELECT min(value != '0'), count() FROM system.settings WHERE name IN ('max_execution_time', 'max_memory_usage', 'max_memory_usage_for_user', 'max_concurrent_queries_for_user', 'max_temporary_data_on_disk_size_for_user')",
    );
    expect(limits).toBe("1\t5");
  });
});

test("each client uses up a quota of its own, of queries and not of time", async () => {
  const { reader } = warehouse;
  const window = { since: DAY_0, to: DAY_0 + DAY, pageSize: 100, wholeTies: false };
  const used = async (clientId: string): Promise<string> => {
    const session = warehouse.session("reader");
    const sql =
      "SELECT quota_key, queries, max_queries, max_execution_time FROM system.quota_usage FORMAT TSV";
    return text(await session.stream("quotas.used", sql, { quotaKey: clientId }));
  };
  for (let page = 0; page < 5; page += 1) {
    const { records } = await reader.messagesByCreation({ ...window, clientId: "greedy/é" });
    await text(records);
  }
  const [key, queries, most, time] = (await used("greedy/é")).trim().split("\t");
  expect([key, most, time]).toEqual([encodeURIComponent("greedy/é"), "30000", "\\N"]);
  expect(Number(queries)).toBeGreaterThanOrEqual(5);
  expect((await used("modest")).split("\t").slice(0, 2)).toEqual(["modest", "0"]);
});

test("the user for look-ups reads what a request needs before its page, and nothing else", async () => {
  expect(await warehouse.reader.findKey("0".repeat(64))).toBeNull();
  const asLookup = (sql: string): Promise<string> => warehouse.sql(sql, "lookup");
  for (const table of ["api_keys", "clients", "campaigns", "watermarks"]) {
    expect(await asLookup(`SELECT count() FROM ${table}`)).toMatch(/^\d+$/);
    await expect(asLookup(`TRUNCATE TABLE ${table}`)).rejects.toThrow(/ACCESS_DENIED|READONLY/);
  }
  await expect(asLookup("SELECT count() FROM conversations")).rejects.toThrow("ACCESS_DENIED");
  // The lookup user may not read erasures either, so pages would fail and the process is not ready.
  const session = warehouse.session("lookup");
  const reader = createReader({ session, lookups: session });
  expect(await errorOf(reader.ping())).toMatchObject({ causeName: "ACCESS_DENIED" });
  await expect(asLookup("SELECT 1 SETTINGS max_execution_time = 0")).rejects.toThrow(
    "SETTING_CONSTRAINT_VIOLATION",
  );
});

test("a key is not waited for longer than the look-up is given", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const url = `http://reader:x@127.0.0.1:${port}/conversation_export`;
  const session = createSession({ url, application: "test" });
  const reader = createReader({ session, lookups: session, lookupTimeoutMs: 200 });
  const started = performance.now();
  expect(await errorOf(reader.findKey("0".repeat(64)))).toMatchObject({
    code: "warehouse_unavailable",
    retryable: true,
  });
  expect(await errorOf(reader.ping())).toMatchObject({ retryable: true });
  expect(performance.now() - started).toBeLessThan(5_000);
  await session.close();
  silent.close();
});
