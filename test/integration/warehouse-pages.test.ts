import { text } from "node:stream/consumers";
import type { ExportRecord } from "@conversation-export/domain";
import {
  createBatch,
  createMovedDates,
  createReader,
  type Page,
  type PageQuery,
  type Reader,
  type Session,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compareUtf8 } from "../reference/order.ts";
import { bySize } from "../system/size.ts";
import {
  type Arrival,
  expectConversations,
  type Expected,
  expectMessages,
  expectPages,
} from "../warehouse/expected.ts";
import { createRandom, type Random, shuffled } from "../warehouse/random.ts";
import { conversation, DAY, DAY_0, endUser, message, publicText, SECOND } from "../warehouse/records.ts";
import { stepsOfLines } from "../warehouse/read-records.ts";
import { splitRecords } from "../compare/split-records.ts";
import { readPage, walk, type Walked } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { noteDates } from "../system/record-dates.ts";
import { readParts, type Row } from "../outside/parquet-file.ts";
import { ticketNow } from "../warehouse/upload-now.ts";

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
});
afterAll(() => warehouse?.stop());

const week = { since: DAY_0, to: DAY_0 + 7 * DAY };

function query(clientId: string, pageSize: number, wholeTies = false, window = week): PageQuery {
  return { clientId, ...window, pageSize, wholeTies };
}

const ODD_IDS = [
  "it's",
  'a"quoted"',
  "with space",
  "tab\tand\nline",
  "nul\0inside",
  "back\\slash",
  "\\N",
  "{client:String}",
  "é",
  "ｚ",
  "😀",
  "\u{10ffff}",
  "%41",
  "a,b",
  "'; DROP TABLE x; --",
  "e\u0301",
  " ",
  "\0",
];

function randomHandoffs(random: Random): Record<string, unknown>[] {
  return Array.from({ length: random.int(4) }, (_, index) => ({
    name: random.pick([null, "Billing", 'quo"te']),
    handoff_id: random.pick([null, "h1", "h2", "x"]),
    id: random.pick(["x", "y", "h1", "'"]),
    date_created: new Date(1_791_072_000_000 + random.int(3) * 1000).toISOString(),
    reason_code: random.pick([null, "unclassified", "other"]),
    reasoning: `attempt ${index} of ${random.int(1e9)}`,
  }));
}

function randomDates(random: Random, date: () => number): number[] {
  const first = date();
  if (random.chance(0.6)) return [first];
  return [first, random.chance(0.5) ? first + 1 + random.int(500) : date(), date()];
}

function randomConversations(random: Random, clients: string[], count: number): ExportRecord[] {
  const records: ExportRecord[] = [];
  for (const client of clients) {
    for (let i = 0; i < count; i += 1) {
      const id = i < ODD_IDS.length ? (ODD_IDS[i] as string) : `c${random.int(1e9)}`;
      const dates = randomDates(
        random,
        () => DAY_0 - DAY + random.int(24) * 12 * 3600 * SECOND + random.int(3),
      );
      for (let version = 1 + random.int(5); version > 0; version -= 1) {
        const created = random.pick(dates);
        records.push(
          conversation(
            {
              client,
              time: DAY_0 + 10 * DAY + random.int(4),
              partition: random.int(2),
              offset: records.length,
            },
            id,
            created,
            created + random.int(8) * DAY + random.int(2),
            {
              inquiry_summary: `export ${records.length}`,
              ...(random.chance(0.6) ? { handoffs: randomHandoffs(random) } : {}),
            },
          ),
        );
      }
    }
  }
  return shuffled(random, records);
}

async function writeInBatches<R extends ExportRecord>(
  random: Random,
  records: readonly R[],
  largest: number,
): Promise<Arrival<R>[]> {
  const arrivals: Arrival<R>[] = [];
  for (let at = 0; at < records.length; ) {
    const batch = records.slice(at, at + 1 + random.int(largest));
    at += batch.length;
    for (let times = random.chance(0.3) ? 2 : 1; times > 0; times -= 1) {
      const uploadedAt = DAY_0 + 20 * DAY + arrivals.length * SECOND;
      await warehouse.write(batch, uploadedAt);
      arrivals.push(...batch.map((record) => ({ record, uploadedAt })));
    }
  }
  return arrivals;
}

/** The records, and how many each page has. */
async function expectWalk<Q extends PageQuery>(
  read: (query: Q) => Promise<Page>,
  asked: Q,
  expected: readonly Expected<ExportRecord>[],
): Promise<Walked> {
  const walked = await walk(read, asked);
  const name = `size ${asked.pageSize}, wholeTies ${asked.wholeTies}`;
  expect(walked.records, name).toEqual(expected.map(({ text }) => text));
  const dates = expected.map(({ date }) => date);
  const pages = expectPages(dates, asked.pageSize, asked.wholeTies);
  const sizes = walked.pages.map(({ rows }) => rows);
  expect(sizes, name).toEqual(pages.length === 0 ? [0] : pages);
  return walked;
}

const isSharded = (): boolean => warehouse.topology.cluster !== null;

const countingReader = (): { readonly reader: Reader; readonly statements: string[] } => {
  const session = warehouse.session("reader");
  const statements: string[] = [];
  const counting: Session = {
    ...session,
    stream: (name, ...rest) => {
      statements.push(name);
      return session.stream(name, ...rest);
    },
  };
  return { reader: createReader({ session: counting, lookups: session }), statements };
};

describe("random data in unmerged parts", () => {
  const random = createRandom(1);
  const clients = ["acme", "globex"];
  const CONVERSATIONS = bySize(24, 200);
  let arrivals: Arrival<ExportRecord>[];
  let messages: Arrival<ExportRecord>[];

  beforeAll(async () => {
    arrivals = await writeInBatches(
      random,
      randomConversations(random, clients, CONVERSATIONS),
      bySize(60, 200),
    );
    const records: ExportRecord[] = [];
    for (const client of clients) {
      for (let i = 0; i < bySize(36, 60); i += 1) {
        const id = i < ODD_IDS.length ? (ODD_IDS[i] as string) : `m${random.int(1e9)}`;
        const dates = randomDates(random, () => DAY_0 - DAY + random.int(20) * 12 * 3600 * SECOND);
        for (let version = 1 + random.int(3); version > 0; version -= 1) {
          records.push(
            message(
              { client, time: DAY_0 + 9 * DAY + random.int(3), offset: records.length },
              id,
              random.pick(dates),
              random.pick(["c1", "c2", "it's \\ \0 odd", "gone"]),
              { message_data: { _type: "text", body: `export ${records.length}` } },
            ),
          );
        }
      }
    }
    messages = await writeInBatches(random, shuffled(random, records), 40);
  });

  test("the parts are not merged", async () => {
    const parts = await warehouse.sql(
      "SELECT min(c) FROM (SELECT count() AS c FROM system.parts WHERE active AND database = currentDatabase() AND table IN ('conversations', 'conversation_updates', 'handoffs', 'messages') GROUP BY table, partition)",
    );
    expect(Number(parts)).toBeGreaterThan(1);
  });

  const windows = [
    week,
    { since: DAY_0 + 1, to: DAY_0 + DAY },
    { since: DAY_0 - 100 * DAY, to: DAY_0 + 100 * DAY },
    { since: DAY_0 + 3 * DAY, to: DAY_0 + 3 * DAY + 2 },
  ];
  const emptyWindows = [
    { since: DAY_0, to: DAY_0 },
    { since: DAY_0 + DAY, to: DAY_0 },
    { since: DAY_0 + 1000 * DAY, to: DAY_0 + 1001 * DAY },
  ];

  test.each([
    ["created", "dateCreated", "conversationsByCreation"],
    ["updated", "dateUpdated", "conversationsByUpdate"],
  ] as const)("the %s window, all page sizes", async (_, by, read) => {
    let total = 0;
    for (const client of clients) {
      for (const window of [...windows, ...emptyWindows]) {
        const expected = expectConversations(arrivals, { client, by, ...window });
        total += expected.length;
        const ends = [expected.length - 1, expected.length, expected.length + 1];
        const isMain = window === week && client === "acme";
        const sizes = isMain ? [1, ...ends] : [5, ...bySize([expected.length], ends)];
        for (const size of sizes) {
          if (size < 1) continue;
          const compare = async (wholeTies: boolean): Promise<void> => {
            const asked = query(client, size, wholeTies, window);
            const { pages } = await expectWalk(warehouse.reader[read], asked, expected);
            let shown = 0;
            for (const page of pages) {
              shown += page.rows;
              const last = expected[shown - 1];
              if (last === undefined) continue;
              const isWhole = wholeTies && expected[shown]?.date !== last.date;
              const behind = isWhole ? { date: last.date + 1, id: "" } : { date: last.date, id: last.id };
              if (page.next !== null) expect(page.next).toEqual(behind);
            }
          };
          await Promise.all([compare(false), compare(true)]);
        }
      }
    }
  });

  test("walks whose ends are guessed are the same", async () => {
    await createMovedDates({ session: warehouse.session("jobs") }).note(Date.now() * 1_000);
    const { reader } = countingReader();
    for (const [by, read] of [
      ["dateCreated", reader.conversationsByCreation],
      ["dateUpdated", reader.conversationsByUpdate],
    ] as const) {
      const expected = expectConversations(arrivals, { client: "acme", by, ...week });
      await expectWalk(read, query("acme", 3), expected);
    }
    const said = expectMessages(messages, { client: "acme", ...week });
    await expectWalk(reader.messagesByCreation, query("acme", 3), said);
    await warehouse.sql("TRUNCATE TABLE watermarks");
    await warehouse.sql("TRUNCATE TABLE moved_dates");
  });

  test.each([
    undefined,
    "it's \\ \0 odd",
    "nobody",
  ])("messages of conversation %j", async (conversationId) => {
    for (const client of clients) {
      const only = conversationId === undefined ? {} : { conversationId };
      const expected = expectMessages(messages, { client, ...week, ...only });
      for (const size of client === "acme" ? [2, expected.length] : [10]) {
        if (size === 0) continue;
        const compare = (wholeTies: boolean) =>
          expectWalk(
            warehouse.reader.messagesByCreation,
            { ...query(client, size, wholeTies), ...only },
            expected,
          );
        await Promise.all([compare(false), compare(true)]);
      }
      for (const window of emptyWindows)
        await expectWalk(
          warehouse.reader.messagesByCreation,
          { ...query(client, 5, false, window), ...only },
          [],
        );
    }
  });

  test.each([
    [3, "acme"],
    [40_000, "globex"],
  ])("windows as lines, in steps of %d keys", async (stepKeys, client) => {
    const session = warehouse.session("reader");
    const reader = createReader({ session, lookups: session, stepKeys });
    for (const window of windows) {
      const wanted = { client, ...window };
      const conversations = expectConversations(arrivals, { ...wanted, by: "dateCreated" });
      const updated = expectConversations(arrivals, { ...wanted, by: "dateUpdated" });
      const said = expectMessages(messages, wanted);
      const query = { clientId: client, ...window };
      for (const [open, expected] of [
        [reader.lines.conversations({ ...query, filter: "created" }), conversations],
        [reader.lines.conversations({ ...query, filter: "updated" }), updated],
        [reader.lines.messages(query), said],
      ] as const) {
        const steps = await stepsOfLines(open);
        expect(steps.flat()).toEqual(expected.map(({ text }) => text));
        if (stepKeys === 3 && expected.length > 10) expect(steps.length).toBeGreaterThan(3);
      }
    }
    expect(await stepsOfLines(reader.lines.messages({ clientId: "nobody", ...week }))).toEqual([[]]);
  });

  test.each([15, 40_000])("windows as Parquet, in steps of %d rows", async (stepKeys) => {
    const session = warehouse.session("reader");
    const { parquet } = createReader({ session, lookups: session, stepKeys });
    const [client = ""] = clients;
    const steps: number[] = [];
    const shown = (text: string) => {
      const { _id, date_created, inquiry_summary, handoffs } = JSON.parse(text) as Row;
      return { _id, date_created, inquiry_summary, handoffs };
    };
    for (const [filter, by] of [
      ["created", "dateCreated"],
      ["updated", "dateUpdated"],
    ] as const) {
      const expected = expectConversations(arrivals, { client, by, ...week });
      const { rows, parts } = await readParts(parquet.conversations({ clientId: client, filter, ...week }));
      expect(rows.map((row) => shown(JSON.stringify(row)))).toEqual(expected.map(({ text }) => shown(text)));
      steps.push(parts);
    }
    for (const conversationId of [undefined, "it's \\ \0 odd", "nobody"]) {
      const only = conversationId === undefined ? {} : { conversationId };
      const { rows } = await readParts(parquet.messages({ clientId: client, ...week, ...only }));
      const expected = expectMessages(messages, { client, ...week, ...only });
      expect(rows.map(({ _id }) => _id)).toEqual(expected.map(({ id }) => id));
    }
    const stableUpTo = DAY_0 + 100 * DAY;
    const query = { clientId: client, kind: "message", after: { date: 0, id: "" }, stableUpTo } as const;
    const changed = await readParts(parquet.changes(query));
    const page = await warehouse.reader.changes({ ...query, pageSize: 10_000 });
    // Between steps, as between pages, a record may repeat; its last place counts.
    const places = new Set(changed.rows.map(({ _id }) => _id).toReversed());
    expect([...places].toReversed()).toEqual(
      splitRecords(await text(page.records)).map((record) => (JSON.parse(record) as Row)["_id"]),
    );
    steps.push(changed.parts);
    // A window of little data has one.
    if (stepKeys === 15) expect(Math.max(...steps)).toBeGreaterThan(1);
  });

  test.each([2, 100])("end users as Parquet, in steps of %d rows", async (stepKeys) => {
    const session = warehouse.session("reader");
    const { parquet } = createReader({ session, lookups: session, stepKeys });
    const client = `people ${stepKeys}`;
    const ids = ODD_IDS.toSorted(compareUtf8);
    const versions = (id: string) => (id === ids[3] ? [1, 2, 3] : [1]);
    const people = ids.flatMap((id) =>
      versions(id).map((time) =>
        endUser({ client, time: DAY_0 + time }, id, {
          profile: { first_name: `version ${time}`, system_properties: { crm: time < 3 ? "x" : "y" } },
        }),
      ),
    );
    for (const time of [1, 2, 3])
      await warehouse.write(people.filter(({ version }) => version.exportedAt === DAY_0 + time));
    const read = async (own: object = {}) => {
      const { rows, parts } = await readParts(parquet.endUsers({ clientId: client, ...own }));
      return { ids: rows.map((row) => row["end_user_id"]), rows, parts };
    };
    const all = await read();
    expect(all.ids).toEqual(ids);
    expect(all.rows[3]?.["profile"]).toMatchObject({ first_name: "version 3", email: null });
    expect(all.parts).toBeGreaterThanOrEqual(stepKeys === 100 ? 1 : ids.length / stepKeys);
    expect((await read({ from: ids[5] })).ids).toEqual(ids.slice(5));
    expect((await read({ externalId: "y" })).ids).toEqual([ids[3]]);
  });

  test("every position of the window, also one that no record has, starts the page behind it", async () => {
    const expected = expectConversations(arrivals, { client: "acme", by: "dateUpdated", ...week });
    for (const { date, id } of shuffled(random, expected).slice(0, bySize(4, 6))) {
      const positions = [
        { date, id },
        { date, id: `${id}\0` },
        { date, id: "" },
        { date: date - 1, id: "\u{10ffff}".repeat(3) },
      ];
      const compare = async (after: (typeof positions)[number]): Promise<void> => {
        const behind = expected.filter(
          (one) => one.date > after.date || (one.date === after.date && compareUtf8(one.id, after.id) > 0),
        );
        const page = await warehouse.reader.conversationsByUpdate({ ...query("acme", 3), after });
        expect(await readPage(page)).toEqual(behind.slice(0, 3).map(({ text }) => text));
      };
      await Promise.all(positions.map(compare));
    }
  });
});

test("offsets and partitions decide among exports of one instant, up to the largest", async () => {
  const created = DAY_0 + DAY;
  const positions = [
    { partition: 0, offset: 2 ** 48 - 1 },
    { partition: 1, offset: 2 ** 32 },
    { partition: 1, offset: 2 ** 32 + 1 },
    { partition: 300, offset: 0 },
    { partition: 65_535, offset: 2 ** 48 - 2 },
    { partition: 65_535, offset: 2 ** 48 - 1 },
  ];
  const { reader } = warehouse;
  for (const [index, position] of positions.entries()) {
    const client = `positions ${index}`;
    const at = (p: typeof position) =>
      conversation({ client, time: DAY_0, ...p }, "c", created, created, { browser: JSON.stringify(p) });
    const winner = at(position);
    await warehouse.write([winner]);
    for (const loser of positions.slice(0, index)) await warehouse.write([at(loser)]);
    for (const read of [reader.conversationsByCreation, reader.conversationsByUpdate])
      expect((await walk(read, query(client, 100))).records).toEqual([publicText(winner)]);
  }
});

describe("ties", () => {
  const created = DAY_0 + DAY;
  const ids = Array.from({ length: 40 }, (_, i) => String(i).padStart(3, "0"));
  beforeAll(async () => {
    const of = (id: string, at: number) => conversation({ client: "tie", time: DAY_0 }, id, at, at);
    await warehouse.write([of("before", created - 1), ...ids.slice(0, 20).map((id) => of(id, created))]);
    await warehouse.write([...ids.slice(20).map((id) => of(id, created)), of("behind", created + 1)]);
  });

  test.each(["conversationsByCreation", "conversationsByUpdate"] as const)("%s", async (read) => {
    for (const [size, wholeTies, pages] of [
      [10, false, [10, 10, 10, 10, 2]],
      [10, true, [1, 40, 1]],
      [41, true, [41, 1]],
      [42, true, [42]],
      [40, true, [1, 40, 1]],
      [1, true, [1, 40, 1]],
    ] as const) {
      const walked = await walk(warehouse.reader[read], query("tie", size, wholeTies));
      expect(
        walked.pages.map(({ rows }) => rows),
        `${size} ${wholeTies}`,
      ).toEqual(pages);
      expect(walked.records.map((text) => (JSON.parse(text) as { _id: string })._id)).toEqual([
        "before",
        ...ids,
        "behind",
      ]);
    }
  });

  test("a tie larger than a page and its extension is split, and says so", async () => {
    const rows = 10_250;
    await warehouse.sql(`INSERT INTO messages (client_id, date_created, message_id, version, exported_at, uploaded_at, record)
      SELECT 'huge', fromUnixTimestamp64Micro(${created}, 'UTC'), leftPad(toString(number), 6, '0'), 1, now(), now(), concat('{"_id":', toString(number), '}')
      FROM numbers(${rows})`);
    await warehouse.sql(`INSERT INTO conversations (client_id, date_created, conversation_id, version, date_updated, head, tail)
      SELECT client_id, date_created, message_id, version, date_created, '{"h":', '}' FROM messages WHERE client_id = 'huge'`);
    await warehouse.sql(`INSERT INTO conversation_updates (client_id, date_updated, conversation_id, version, date_created)
      SELECT client_id, date_created, conversation_id, version, date_created FROM conversations WHERE client_id = 'huge'`);
    for (const table of ["conversations", "messages"] as const) await warehouse.sql(noteDates(table));
    const { reader } = warehouse;
    for (const read of [
      reader.messagesByCreation,
      reader.conversationsByCreation,
      reader.conversationsByUpdate,
    ]) {
      const walked = await walk(read, query("huge", 100, true));
      expect(walked.pages).toEqual([
        { rows: 10_100, next: { date: created, id: "010099" } },
        { rows: 150, next: null },
      ]);
    }
  });
});

describe("many superseded updates", () => {
  const created = DAY_0 + DAY;
  // More than a tie may hold, and than a small page's first reads.
  const SUPERSEDED = bySize(12_000, 30_000);

  /** Updated every microsecond from `first` on; only the last version is live. */
  async function exportOften(client: string, id: string, exports: number, first: number): Promise<void> {
    await warehouse.sql(`INSERT INTO conversation_updates (client_id, date_updated, conversation_id, version, date_created)
      SELECT '${client}', fromUnixTimestamp64Micro(${first} + number, 'UTC'), '${id}', number + 1, fromUnixTimestamp64Micro(${created}, 'UTC')
      FROM numbers(${exports})`);
    await warehouse.sql(`INSERT INTO conversations (client_id, date_created, conversation_id, version, date_updated, head, tail)
      SELECT client_id, date_created, conversation_id, version, date_updated, concat('{"id":"${id}","v":', toString(version), ',"h":'), '}'
      FROM conversation_updates WHERE client_id = '${client}' AND conversation_id = '${id}' AND version = ${exports}`);
    await warehouse.sql(noteDates("conversations"));
  }

  test("a walk passes over more of them than it looks at first", async () => {
    const rows = bySize(12_000, 45_000);
    await exportOften("many", "a", rows, created);
    await exportOften("many", "b", 2, created + 10);
    await exportOften("many", "c", rows, created + rows);
    await exportOften("many", "d", 1, created + 2 * rows + 1);
    const live = [
      `{"id":"b","v":2,"h":[]}`,
      `{"id":"a","v":${rows},"h":[]}`,
      `{"id":"c","v":${rows},"h":[]}`,
      `{"id":"d","v":1,"h":[]}`,
    ];
    for (const size of bySize([1, 4], [1, 2, 4])) {
      for (const wholeTies of [false, true]) {
        const walked = await walk(warehouse.reader.conversationsByUpdate, query("many", size, wholeTies));
        expect(walked.records, `size ${size}`).toEqual(live);
        expect(walked.pages.map(({ rows }) => rows)).toEqual(expectPages([1, 2, 3, 4], size, wholeTies));
      }
    }
  });

  test("a full page with nothing but superseded rows behind it is the last one", async () => {
    await exportOften("last", "a", 1, created);
    await exportOften("last", "b", SUPERSEDED, created + 1);
    const window = { since: created, to: created + SUPERSEDED };
    for (const wholeTies of [false, true]) {
      const walked = await walk(warehouse.reader.conversationsByUpdate, query("last", 1, wholeTies, window));
      expect(walked).toEqual({ records: ['{"id":"a","v":1,"h":[]}'], pages: [{ rows: 1, next: null }] });
    }
  });

  test("nothing but superseded rows is an empty window", async () => {
    await exportOften("gone", "a", SUPERSEDED, created);
    const window = { since: created, to: created + SUPERSEDED - 1 };
    const walked = await walk(warehouse.reader.conversationsByUpdate, query("gone", 1, false, window));
    expect(walked).toEqual({ records: [], pages: [{ rows: 0, next: null }] });
  });
});

// The two reads of a page by update see the update index and the live rows at different states.
describe("a conversation that is exported again between the two reads", () => {
  const exported = (client: string, version: number, id: string, updated: number, summary = `${version}`) =>
    conversation({ client, time: DAY_0 + version, offset: version }, id, DAY_0, DAY_0 + updated, {
      inquiry_summary: summary,
    });
  /** On one page: a later page reads the entry as well. */
  const shown = async (client: string, window = week): Promise<string[]> => {
    const pages = [false, true].map(async (wholeTies) =>
      (
        await readPage(await warehouse.reader.conversationsByUpdate(query(client, 10, wholeTies, window)))
      ).map((record) => {
        const { _id: id, inquiry_summary: summary } = JSON.parse(record) as Record<string, string>;
        return `${id} ${summary}`;
      }),
    );
    const [read = [], other] = await Promise.all(pages);
    expect(other).toEqual(read);
    return read;
  };
  /** Without its entry of the update index. */
  const writeLiveRow = async (record: ExportRecord, uploadedAt = DAY_0): Promise<void> => {
    const batch = createBatch(record.type, 1024);
    batch.add(record);
    batch.fillUpload(uploadedAt);
    const [live] = batch.inserts(0, 1).slice(-1);
    expect(live?.table).toBe("conversations");
    if (live !== undefined) await warehouse.writer.insert(live, ticketNow());
  };
  const begin = (client: string): Promise<void> =>
    warehouse.write([exported(client, 1, "a", 1), exported(client, 1, "b", 2), exported(client, 1, "c", 3)]);

  test.each([
    ["with an equal date stays", "equal", 2, ["a 1", "b 2", "c 1"]],
    ["with a later date stands there", "later", 4, ["a 1", "c 1", "b 2"]],
    ["with an earlier date stands there", "earlier", 0, ["b 2", "a 1", "c 1"]],
    ["with a date outside of the window is not there", "outside", 8 * DAY, ["a 1", "c 1"]],
  ])("%s", async (_, client, updated, expected) => {
    await begin(client);
    await writeLiveRow(exported(client, 2, "b", updated));
    expect(await shown(client)).toEqual(expected);
  });

  test("has its former version while only its entry is there", async () => {
    await begin("entry");
    for (const [version, updated] of [
      [2, 2],
      [3, 4],
    ] as const)
      await warehouse.write([exported("entry", version, "b", updated)], DAY_0, 3);
    expect(await shown("entry")).toEqual(["a 1", "b 1", "c 1"]);
  });

  test("has one row, the last that was inserted, where a version was repaired and nothing is merged yet", async () => {
    for (const updated of [2, 4]) {
      const client = `repaired-${updated}`;
      await begin(client);
      await warehouse.write([exported(client, 1, "b", updated, "right")], DAY_0 + DAY);
      const expected = updated === 2 ? ["a 1", "b right", "c 1"] : ["a 1", "c 1", "b right"];
      expect(await shown(client)).toEqual(expected);
      expect(await shown(client, { since: DAY_0 + 2, to: DAY_0 + 3 })).toEqual(
        updated === 2 ? ["b right"] : [],
      );
    }
  });
});

describe("the end of a page, guessed from the page before", () => {
  const HOUR = 3_600 * SECOND;
  const month = { since: DAY_0, to: DAY_0 + 100 * DAY };
  const GROUPS: Readonly<Record<string, readonly (readonly [count: number, apart: number])[]>> = {
    steady: [[60, SECOND]],
    "a gap of months": [
      [21, SECOND],
      [1, 90 * DAY],
      [12, SECOND],
    ],
    "many in one second": [
      [21, HOUR],
      [bySize(50, 2_000), 20],
      [12, HOUR],
    ],
    "an empty day": [
      [25, 60 * SECOND],
      [1, DAY],
      [12, 60 * SECOND],
    ],
    "all at one instant": [
      [10, SECOND],
      [30, 0],
      [10, SECOND],
    ],
  };

  const write = async (client: string): Promise<string[]> => {
    let at = DAY_0;
    const dates = (GROUPS[client] ?? []).flatMap(([count, apart]) =>
      Array.from({ length: count }, () => (at += apart)),
    );
    const values = `'${client}', fromUnixTimestamp64Micro(date, 'UTC'), leftPad(toString(place), 6, '0'), 1`;
    const from = `FROM (SELECT arrayJoin(arrayZip([${dates.join(",")}]::Array(Int64), range(${dates.length}))) AS one, one.1 AS date, one.2 AS place)`;
    await warehouse.sql(
      `INSERT INTO messages (client_id, date_created, message_id, version, record) SELECT ${values}, concat('{"n":', toString(place), '}') ${from}`,
    );
    await warehouse.sql(
      `INSERT INTO conversations (client_id, date_created, conversation_id, version, date_updated, head, tail) SELECT ${values}, fromUnixTimestamp64Micro(date, 'UTC'), concat('{"n":', toString(place), ',"h":'), '}' ${from}`,
    );
    await warehouse.sql(`INSERT INTO conversation_updates (client_id, date_updated, conversation_id, version, date_created)
      SELECT client_id, date_created, conversation_id, version, date_created FROM conversations WHERE client_id = '${client}'`);
    return dates.map((_, place) => `{"n":${place}`);
  };

  test.each(Object.keys(GROUPS))("%s", async (client) => {
    const expected = await write(client);
    for (const table of ["conversations", "messages"] as const) await warehouse.sql(noteDates(table));
    await createMovedDates({ session: warehouse.session("jobs") }).note(Date.now() * 1_000);
    for (const list of ["conversationsByCreation", "conversationsByUpdate", "messagesByCreation"] as const) {
      const { reader, statements } = countingReader();
      const walked = await walk(reader[list], query(client, 10, false, month));
      expect(walked.records.map((record) => record.replace(/[,}].*/, ""))).toEqual(expected);
      for (const { rows } of walked.pages) expect(rows).toBeGreaterThan(0);
      const ends = statements.filter((name) => name.includes(".end_of_")).length;
      // The page end, and whether more follows, each nearby and overall.
      if (client === "steady" && !isSharded()) expect(ends).toBeLessThanOrEqual(4);
      else expect(ends).toBeGreaterThan(2);
    }
  });

  test("finds what is hidden and what has moved", async () => {
    const client = "steady";
    const hidden = (place: number): boolean => place % 7 === 3 || (place > 20 && place < 45);
    const moved = [5, 50];
    const idOf = (place: number): string => String(place).padStart(6, "0");
    const quoted = (place: number): string => `'${idOf(place)}'`;
    const names = Array.from({ length: 60 }, (_, place) => place);
    await warehouse.sql(`INSERT INTO erasure_keys (client_id, kind, id, created_before, request_id, phase)
      SELECT '${client}', arrayJoin(['conversation', 'message']), arrayJoin([${names.filter(hidden).map(quoted).join(",")}]), '2100-01-01', 'guessed', 'erased'`);
    const remaining = names.filter((place) => !hidden(place)).map(idOf);
    const read = async (list: "conversationsByCreation" | "messagesByCreation"): Promise<string[]> => {
      const { reader } = countingReader();
      const { records, pages } = await walk(reader[list], query(client, 10, false, month));
      for (const { rows, next } of pages) if (next !== null) expect(rows).toBe(10);
      return records.map((record) => (/"n":(\d+)/.exec(record)?.[1] ?? "").padStart(6, "0"));
    };
    for (const list of ["conversationsByCreation", "messagesByCreation"] as const)
      expect(await read(list)).toEqual(remaining);

    for (const [table, id] of [
      ["conversations", "conversation_id"],
      ["messages", "message_id"],
    ] as const) {
      await warehouse.sql(`INSERT INTO ${table} SELECT * REPLACE (date_created + INTERVAL 1 HOUR AS date_created, version + 1 AS version) FROM ${table}
        WHERE client_id = '${client}' AND ${id} IN (${moved.map(quoted).join(",")})`);
      await warehouse.sql(noteDates(table));
    }
    await warehouse.sql("TRUNCATE TABLE watermarks");
    await createMovedDates({ session: warehouse.session("jobs") }).note(Date.now() * 1_000);
    const ends = remaining.filter((id) => !moved.map(idOf).includes(id));
    for (const list of ["conversationsByCreation", "messagesByCreation"] as const)
      expect(await read(list)).toEqual([...ends, ...moved.map(idOf)]);
  });

  test("that is too near for a page that has begun ends it, with a link only if a record lies behind", async () => {
    if (isSharded()) return;
    const count = 1_000;
    await warehouse.sql(`INSERT INTO messages (client_id, date_created, message_id, version, record)
      SELECT 'long', fromUnixTimestamp64Micro(toInt64(${DAY_0} + number * ${SECOND}), 'UTC'), leftPad(toString(number), 4, '0'), 1,
        concat('{"n":', toString(number), ',"text":"', repeat('x', 8000), '"}') FROM numbers(${count})`);
    await warehouse.sql(noteDates("messages"));
    await createMovedDates({ session: warehouse.session("jobs") }).note(Date.now() * 1_000);
    const { reader } = countingReader();
    const guessed = {
      ...query("long", 600, false, month),
      after: { date: DAY_0 - 1, id: "x" },
      pace: SECOND / 2,
    };
    const { records, pages } = await walk(reader.messagesByCreation, guessed);
    expect(records.map((record) => Number(/\d+/.exec(record)?.[0]))).toEqual(
      Array.from({ length: count }, (_, n) => n),
    );
    const [first] = pages;
    expect(first?.rows).toBeLessThan(600);
    expect(first?.next).not.toBeNull();
    expect(pages).toHaveLength(3);

    await warehouse.sql(`INSERT INTO erasure_keys (client_id, kind, id, created_before, request_id, phase)
      SELECT 'long', 'message', leftPad(toString(number), 4, '0'), '2100-01-01', 'r', 'erased' FROM numbers(${first?.rows ?? 0}, ${count})`);
    expect((await walk(reader.messagesByCreation, guessed)).pages).toEqual([
      { rows: first?.rows, next: null },
    ]);
  });

  test("that would look at too many rows is given up before they are read", async () => {
    if (isSharded()) return;
    const { reader, statements } = countingReader();
    const rows = 1_100_000;
    await warehouse.sql(`INSERT INTO messages (client_id, date_created, message_id, version, record)
      SELECT 'million', fromUnixTimestamp64Micro(${DAY_0} + intDiv(number, 2), 'UTC'), leftPad(toString(number), 7, '0'), 1, '{}' FROM numbers(${rows})`);
    const noted = { after: { date: DAY_0 - 1, id: "x" }, pace: DAY };
    const page = await reader.messagesByCreation({ ...query("million", 10, false, month), ...noted });
    expect(await readPage(page)).toHaveLength(10);
    expect(page.end()).toMatchObject({ rows: 10, next: { id: "0000009" } });
    expect(statements.filter((name) => !name.includes("exceptions"))).toEqual([
      "pages.messages_by_creation",
      "pages.end_of_messages_by_creation",
      "pages.messages_by_creation",
    ]);
  });
});

test("all lists of a client whose records are all erased are empty", async () => {
  const at = { client: "erased", time: DAY_0 };
  await warehouse.write([conversation(at, "c", DAY_0, DAY_0)]);
  await warehouse.write([message(at, "m", DAY_0, "c")]);
  await warehouse.write([endUser(at, "u")]);
  await warehouse.sql(`INSERT INTO erasure_keys (client_id, kind, id, created_before, request_id, phase)
    SELECT 'erased', arrayJoin(['conversation', 'message', 'end_user_id']), arrayJoin(['c', 'm', 'u']), '2100-01-01', 'r', 'erased'`);
  const { reader } = warehouse;
  const windows = [
    reader.conversationsByCreation,
    reader.conversationsByUpdate,
    reader.messagesByCreation,
    (one: PageQuery) => reader.messagesByCreation({ ...one, conversationId: "c" }),
  ];
  for (const read of windows)
    for (const wholeTies of [false, true])
      expect(await walk(read, query("erased", 10, wholeTies))).toEqual({
        records: [],
        pages: [{ rows: 0, next: null }],
      });
  for (const externalId of [undefined, "x"]) {
    const page = await reader.endUsers({ clientId: "erased", limit: 10, ...(externalId && { externalId }) });
    expect(await text(page.records)).toBe("");
    expect(page.end()).toEqual({ rows: 0, next: null });
  }
  for (const kind of ["conversation", "message", "end_user"] as const) {
    const after = { date: 0, id: "" };
    const stableUpTo = DAY_0 + DAY;
    const page = await reader.changes({ clientId: "erased", kind, after, stableUpTo, pageSize: 10 });
    expect(await text(page.records)).toBe("");
    expect(page.end(), kind).toEqual({ rows: 0, next: { date: stableUpTo, id: "" }, isLast: true });
  }
});
