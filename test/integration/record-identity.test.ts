import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { ConversationRecord, MessageRecord } from "@conversation-export/domain";
import {
  createMovedDates,
  createReader,
  type MessagePageQuery,
  type OpenParquet,
  type PageQuery,
  type Reader,
  type Session,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SHARDS } from "../system/shards.ts";
import { seedOfRun, bySize } from "../system/size.ts";
import { type Arrival, expectConversations, expectMessages } from "../warehouse/expected.ts";
import { createRandom } from "../sample/values/random.ts";
import { conversation, DAY, DAY_0, message, SECOND } from "../warehouse/records.ts";
import { readParts } from "../outside/parquet-file.ts";
import { expectedRow, readView, type Row, VIEWS } from "../warehouse/view-rows.ts";
import { readPage, splitRecords } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

const CLIENT = "acme";
const IDS = bySize(25, 200);
/** Fewest times that each list is read meanwhile. */
const POLLS = bySize(3, 100);
/** Fewest exports of conversations, and of messages. */
const EXPORTS = bySize(100, 2_000);
const WINDOW = { since: DAY_0 - 100 * DAY, to: DAY_0 + 100 * DAY };
const QUERY: PageQuery = { clientId: CLIENT, ...WINDOW, pageSize: 10_000, wholeTies: false };

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
  await warehouse.sql("SYSTEM START MERGES");
});
afterAll(() => warehouse?.stop());

const idsOf = (records: readonly string[]): string[] =>
  records.map((record) => (JSON.parse(record) as { _id: string })._id);

const linesOf = async (list: "conversations" | "messages"): Promise<string[]> => {
  const chunks: Buffer[] = [];
  const lines = await warehouse.reader.lines[list].read({ clientId: CLIENT, ...WINDOW });
  for await (const chunk of lines) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString().split("\n").filter(Boolean);
};

const parquetFrom = async (open: OpenParquet): Promise<string[]> =>
  (await readParts(open)).rows.map((row) => JSON.stringify(row));

const conversationReads: Readonly<Record<string, () => Promise<string[]>>> = {
  created: async () => readPage(await warehouse.reader.conversationsByCreation(QUERY)),
  "created, whole ties": async () =>
    readPage(await warehouse.reader.conversationsByCreation({ ...QUERY, wholeTies: true })),
  updated: async () => readPage(await warehouse.reader.conversationsByUpdate(QUERY)),
  lines: () => linesOf("conversations"),
};
const updatedAsParquet = (): Promise<string[]> =>
  parquetFrom(warehouse.reader.parquet.conversations({ clientId: CLIENT, filter: "updated", ...WINDOW }));
const messageReads: Readonly<Record<string, () => Promise<string[]>>> = {
  created: async () => readPage(await warehouse.reader.messagesByCreation(QUERY)),
  lines: () => linesOf("messages"),
};

/** What an analyst sees at once: records with nothing but their ids. */
const idsInView = (view: "conversations" | "messages", id: string) => async (): Promise<string[]> =>
  (
    await warehouse.sql(
      `SELECT concat('{"_id":"', ${id}, '"}') FROM ${VIEWS}.${view} FORMAT TSVRaw`,
      "analyst",
    )
  )
    .split("\n")
    .filter(Boolean);
const byId = (rows: readonly Row[], id: string): Row[] =>
  rows.toSorted((a, b) => (String(a[id]) < String(b[id]) ? -1 : 1));

it("while exports change dates, every answer has each record once, and all that were there before", async () => {
  const seed = seedOfRun("record identity");
  const arrivals: Arrival<ConversationRecord>[] = [];
  const messageArrivals: Arrival<MessageRecord>[] = [];
  const readable = new Set<string>();
  let offset = 0;
  const polls: Record<string, number> = {};
  let writing = true;
  /** The instants of upload that the writers are at. */
  const uploads: number[] = [];

  const write = async (writer: number): Promise<void> => {
    const random = createRandom(seed, `writer ${writer}`);
    for (let batch = 0; writing; batch += 1) {
      const uploadedAt = Date.now() * 1_000 + writer;
      uploads[writer] = uploadedAt;
      const number = random.int(IDS);
      const created = DAY_0 + random.int(4) * 20 * DAY + random.int(3);
      offset += 1;
      // Each writer owns a partition, as ingest processes do; an export may arrive late.
      const at = { client: CLIENT, time: DAY_0 + 10 * DAY + random.int(1_000), partition: writer, offset };
      const record = conversation(at, `c${number}`, created, created + random.int(10) * DAY, {
        handoffs: [
          {
            name: "Desk",
            handoff_id: random.pick(["h1", "h2", "h3"]),
            id: `a${number}`,
            date_created: new Date((DAY_0 + random.int(5) * SECOND) / 1000).toISOString(),
            reason_code: null,
            reasoning: `export ${offset}`,
          },
        ],
      });
      const said = message(at, `m${number}`, created, random.pick(["c1", "c2"]), {});
      arrivals.push({ record, uploadedAt });
      messageArrivals.push({ record: said, uploadedAt });
      await warehouse.write([record], uploadedAt);
      await warehouse.write([said], uploadedAt);
      readable.add(String(number));
    }
  };

  const reads = [
    ...Object.entries(conversationReads).map(([name, read]) => ({
      name: `conversations ${name}`,
      letter: "c",
      read,
    })),
    ...Object.entries(messageReads).map(([name, read]) => ({ name: `messages ${name}`, letter: "m", read })),
    { name: "conversations updated as Parquet", letter: "c", read: updatedAsParquet },
    { name: "view of conversations", letter: "c", read: idsInView("conversations", "conversation_id") },
    { name: "view of messages", letter: "m", read: idsInView("messages", "message_id") },
  ];
  const poll = async ({ name, letter, read }: (typeof reads)[number]): Promise<void> => {
    for (let times = 0; writing; times += 1) {
      const before = [...readable].map((number) => `${letter}${number}`);
      const ids = idsOf(await read());
      // A view looks twice: a record that moves in between may be missing for once, and there twice over shards.
      const isView = name.startsWith("view");
      if (!isView || SHARDS === 1) expect(new Set(ids).size, `${name}: ${ids.join()}`).toBe(ids.length);
      if (!isView) expect(ids, name).toEqual(expect.arrayContaining(before));
      polls[name] = times;
      if (arrivals.length >= EXPORTS && reads.every((one) => (polls[one.name] ?? 0) >= POLLS))
        writing = false;
    }
  };
  const dates = createMovedDates({ session: warehouse.session("jobs") });
  let notes = 0;
  const note = async (): Promise<void> => {
    while (writing) {
      await dates.note(Math.min(...uploads));
      notes += 1;
    }
  };
  const stopAtFailure = (error: unknown): never => {
    writing = false;
    throw error;
  };
  await Promise.all(
    [write(0), write(1), note(), ...reads.map(poll)].map((work) => work.catch(stopAtFailure)),
  );
  console.log(`exports: ${arrivals.length}, polls: ${JSON.stringify(polls)}, notes: ${notes}`);
  expect(await warehouse.sql("SELECT count() FROM moved_dates")).not.toBe("0");

  const window = { client: CLIENT, ...WINDOW };
  const created = expectConversations(arrivals, { ...window, by: "dateCreated" }).map((one) => one.text);
  const updated = expectConversations(arrivals, { ...window, by: "dateUpdated" }).map((one) => one.text);
  const said = expectMessages(messageArrivals, window).map((one) => one.text);
  const check = async (): Promise<void> => {
    for (const [name, read] of Object.entries(conversationReads))
      expect(await read(), name).toEqual(name === "updated" ? updated : created);
    for (const [name, read] of Object.entries(messageReads)) expect(await read(), name).toEqual(said);
    for (const [view, id, texts] of [
      ["conversations", "conversation_id", created],
      ["messages", "message_id", said],
    ] as const) {
      const rows = texts.map((one) => expectedRow(view, CLIENT, JSON.parse(one) as Row));
      const shown = await readView(warehouse, view, "* EXCEPT record_last_updated");
      expect(byId(shown, id), view).toEqual(byId(rows, id));
    }
    const reasons = created.flatMap((one) =>
      (JSON.parse(one) as { handoffs: { reasoning: string }[] }).handoffs.map(({ reasoning }) => reasoning),
    );
    const handoffs = await readView(warehouse, "handoffs", "reasoning");
    expect(handoffs.map(({ reasoning }) => String(reasoning)).toSorted()).toEqual(reasons.toSorted());
  };
  await check();
  for (const table of ["conversations", "conversation_updates", "handoffs", "messages", "record_dates"])
    await warehouse.sql(`OPTIMIZE TABLE ${table} FINAL`);
  await check();
  // The next tests upload as of earlier instants.
  await warehouse.sql("TRUNCATE TABLE watermarks");
});

/**
 * A reader that waits for `between` when it has asked for several dates and before it reads the records, or when
 * another question is answered.
 */
const readerWith = (between: () => Promise<void>, question = "pages.facts"): Reader => {
  const session = warehouse.session("reader");
  const stream: Session["stream"] = async (name, query, options) => {
    const answer = await session.stream(name, query, options);
    if (name !== question) return answer;
    // The question is answered once its answer has been read.
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    await between();
    return Readable.from(chunks);
  };
  return createReader({ session: { ...session, stream }, lookups: session });
};

const CREATED = DAY_0 + 30 * DAY;
const CONVERSATION = { conversationId: "c" };

type Window = Required<Pick<PageQuery, "clientId" | "since" | "to">>;
const inWindow = (window: Window, own: object = {}): MessagePageQuery => ({
  ...window,
  pageSize: 100,
  wholeTies: false,
  ...own,
});
const linesFrom = async (
  reader: Reader,
  list: "conversations" | "messages",
  window: Window,
): Promise<string[]> => (await text(await reader.lines[list].read(window))).split("\n").filter(Boolean);

const readsAtOnce: Readonly<Record<string, (reader: Reader, window: Window) => Promise<string[]>>> = {
  "conversations created": async (reader, window) =>
    readPage(await reader.conversationsByCreation(inWindow(window))),
  "conversations created, whole ties": async (reader, window) =>
    readPage(await reader.conversationsByCreation(inWindow(window, { wholeTies: true }))),
  "conversations updated": async (reader, window) =>
    readPage(await reader.conversationsByUpdate(inWindow(window))),
  "conversations lines": (reader, window) => linesFrom(reader, "conversations", window),
  "messages created": async (reader, window) => readPage(await reader.messagesByCreation(inWindow(window))),
  "messages of a conversation": async (reader, window) =>
    readPage(await reader.messagesByCreation(inWindow(window, CONVERSATION))),
  "messages lines": (reader, window) => linesFrom(reader, "messages", window),
  "conversations as Parquet": (reader, window) =>
    parquetFrom(reader.parquet.conversations({ ...window, filter: "created" })),
  "conversations as Parquet, updated": (reader, window) =>
    parquetFrom(reader.parquet.conversations({ ...window, filter: "updated" })),
  "messages as Parquet": (reader, window) => parquetFrom(reader.parquet.messages(window)),
  "messages as Parquet, of a conversation": (reader, window) =>
    parquetFrom(reader.parquet.messages({ ...window, ...CONVERSATION })),
};

const PLACES = {
  "earlier in the window": -DAY,
  "later in the window": DAY,
  "before the window": -20 * DAY,
  "behind the window": 20 * DAY,
} as const;

/** Clients of these tests begin with the name of the list that they read. */
const isOfMessages = (client: string): boolean => client.startsWith("messages");
const isOfConversations = (client: string): boolean => !isOfMessages(client);

/** A record of a list as it stands under a date of creation; the later `time`, the newer. */
type Written = { readonly client: string; readonly time: number; readonly created: number };

/** Writes one export of a record for each client, in a part of its own for each list. */
const writeAll = async (id: string, exports: readonly Written[], uploadedAt?: number): Promise<void> => {
  await warehouse.write(
    exports.filter(({ client }) => isOfMessages(client)).map((at) => message(at, id, at.created, "c")),
    uploadedAt,
  );
  await warehouse.write(
    exports
      .filter(({ client }) => isOfConversations(client))
      .map((at) => conversation(at, id, at.created, at.created)),
    uploadedAt,
  );
};

/** Three records for each client, one of which moves while they are read; it may have had another date before. */
const writeRecords = async (
  cases: readonly { readonly client: string; readonly wasMoved: boolean }[],
  uploadedAt?: number,
): Promise<void> => {
  const write = (
    id: string,
    clients: readonly { readonly client: string }[],
    time: number,
    created: number,
  ) =>
    writeAll(
      id,
      clients.map(({ client }) => ({ client, time, created })),
      uploadedAt,
    );
  const moved = cases.filter(({ wasMoved }) => wasMoved);
  await write("b", moved, DAY_0 - SECOND, CREATED - 2 * DAY);
  for (const [index, id] of ["a", "b", "c"].entries())
    await write(id, cases, DAY_0, CREATED + index * SECOND);
};

const places = Object.entries(PLACES).flatMap(([place, by]) =>
  [false, true].map((wasMoved) => ({ place, by, wasMoved })),
);

describe("a record that moves while a page is read", () => {
  const clientOf = (name: string, { place, wasMoved }: (typeof places)[number]): string =>
    `${name}: ${wasMoved ? "several dates" : "one date"}, ${place}`;

  beforeAll(() =>
    writeRecords(
      Object.keys(readsAtOnce).flatMap((name) =>
        places.map((one) => ({ client: clientOf(name, one), wasMoved: one.wasMoved })),
      ),
    ),
  );

  it.each(Object.entries(readsAtOnce))("is never there twice: %s", async (name, read) => {
    for (const one of places) {
      const client = clientOf(name, one);
      const moved = { client, time: DAY_0 + SECOND, created: CREATED + one.by };
      const reader = readerWith(() => writeAll("b", [moved]));
      const window = { clientId: client, since: CREATED - 10 * DAY, to: CREATED + 10 * DAY };
      // Known under several dates, it is looked up as it is now; else it is shown as it was, so that none is
      // missed.
      const hasLeft = one.wasMoved && !one.place.endsWith("in the window");
      const shown = idsOf(await read(reader, window)).toSorted();
      expect(shown, client).toEqual(hasLeft ? ["a", "c"] : ["a", "b", "c"]);
    }
  });
});

/** What a reader asks when dates are noted, where all records were exported before or some since. */
const QUESTIONS = [
  { question: "pages.doubts", noted: "before" },
  { question: "pages.doubts", noted: "since" },
  { question: "pages.several", noted: "since" },
] as const;

it.each(
  Object.entries(readsAtOnce),
)("%s: a record that moves while dates are noted is never there twice", async (name, read) => {
  const cases = QUESTIONS.flatMap((asked) =>
    places.map((one) => ({
      ...asked,
      ...one,
      client: `${name}: ${asked.question} ${asked.noted} ${one.place} ${one.wasMoved}`,
    })),
  );
  const exported = (when: "before" | "since") => cases.filter(({ noted }) => noted === when);
  const now = Date.now() * 1_000;
  const noted = now - 60 * SECOND;
  await writeRecords(exported("before"), noted - SECOND);
  await createMovedDates({ session: warehouse.session("jobs") }).note(noted);
  await writeRecords(exported("since"), now);
  for (const { client, question, noted: when, place, by, wasMoved } of cases) {
    let times = 0;
    const move = async (): Promise<void> => {
      times += 1;
      await writeAll("b", [{ client, time: DAY_0 + SECOND, created: CREATED + by }], Date.now() * 1_000);
    };
    const window = { clientId: client, since: CREATED - 10 * DAY, to: CREATED + 10 * DAY };
    // A further question follows about records with exports since, which finds this one.
    const isFound = wasMoved || (question === "pages.doubts" && when === "since");
    const hasLeft = isFound && !place.endsWith("in the window");
    const shown = idsOf(await read(readerWith(move, question), window)).toSorted();
    expect(shown, client).toEqual(hasLeft ? ["a", "c"] : ["a", "b", "c"]);
    expect(times, client).toBe(1);
  }
  await warehouse.sql("TRUNCATE TABLE watermarks");
});

const all = () => ({ after: { date: 0, id: "" }, settled: (Date.now() + 60_000) * 1_000 });

const feedFrom =
  (kind: "conversation" | "message") =>
  async (reader: Reader, { clientId }: Window): Promise<string[]> => {
    const page = await reader.changes({ clientId, kind, ...all(), pageSize: 100 });
    return splitRecords(await text(page.records));
  };

it("a record that has moved is given out as it is, whether its dates are noted or not", async () => {
  const session = warehouse.session("jobs");
  const dates = createMovedDates({ session });
  const lists = {
    ...readsAtOnce,
    "conversations changed": feedFrom("conversation"),
    "messages changed": feedFrom("message"),
    "messages as Parquet, changed": (reader: Reader, { clientId }: Window) =>
      parquetFrom(reader.parquet.changes({ clientId, kind: "message", ...all() })),
  };
  const clients = Object.keys(lists);
  const window = { since: CREATED - 10 * DAY, to: CREATED + 10 * DAY };
  // Each id tells where it is first and then, and how many of its two dates are noted.
  const moves = Object.entries({ near: DAY, far: 20 * DAY }).flatMap(([place, by]) =>
    [0, 1, 2].map((noted) => ({ id: `${place}-${noted}`, from: CREATED + noted * SECOND, by, noted })),
  );
  let offset = 0;
  let uploadedAt = (Date.now() - 130_000) * 1_000;
  const write = async (id: string, created: number): Promise<void> => {
    offset += 1;
    uploadedAt += SECOND / 100;
    const at = (client: string) => ({ client, time: DAY_0, offset });
    await warehouse.write(
      clients
        .filter(isOfMessages)
        .map((client) => message(at(client), id, created, "c", { message: `export ${offset}` })),
      uploadedAt,
    );
    await warehouse.write(
      clients
        .filter(isOfConversations)
        .map((client) =>
          conversation(at(client), id, created, CREATED, { inquiry_summary: `export ${offset}` }),
        ),
      uploadedAt,
    );
  };
  const writeMoves = async (part: number): Promise<void> => {
    for (const { id, from, by, noted } of moves) {
      const first = noted === 0 ? 1 : 0;
      const second = noted === 2 ? 0 : 1;
      if (part === first) await write(id, from);
      if (part === second) await write(id, from + by);
    }
  };
  await write("stays", CREATED);
  await writeMoves(0);
  const noted = uploadedAt + SECOND / 200;
  await dates.note(noted);
  for (const client of clients)
    expect(
      await warehouse.sql(`SELECT uniqExact(date_created) FROM moved_dates WHERE client_id = '${client}'`),
      client,
    ).toBe("3");
  // Farther behind than dates are noted at once.
  uploadedAt += 70 * SECOND;
  await writeMoves(1);

  const expectLists = async (state: string): Promise<void> => {
    const reader = createReader({ session: warehouse.session("reader"), lookups: session });
    for (const [client, read] of Object.entries(lists)) {
      const records = (await read(reader, { clientId: client, ...window })).map(
        (record) => JSON.parse(record) as { _id: string; date_created: string },
      );
      const isFar = ({ id }: { readonly id: string }): boolean => id.startsWith("far");
      // By update and in the feed, a record does not leave by its date of creation.
      const stays = client.endsWith("updated") || client.endsWith("changed");
      const expected = moves.filter((move) => stays || !isFar(move));
      expect(records.map(({ _id }) => _id).toSorted(), `${state}: ${client}`).toEqual(
        ["stays", ...expected.map(({ id }) => id)].toSorted(),
      );
      for (const { id, from, by } of expected) {
        const found = records.find(({ _id }) => _id === id);
        expect(Date.parse(found?.date_created ?? "") * 1_000, `${state}: ${client}: ${id}`).toBe(from + by);
      }
    }
  };
  await expectLists("noted in part");

  // Entries without rows, older than those of the records that have moved.
  const listed = clients.filter((client) => !client.endsWith("changed"));
  await warehouse.sql(`INSERT INTO changes (client_id, kind, stored_at, id, date_created)
    SELECT arrayJoin(['${listed.join("', '")}']), arrayJoin(['conversation', 'message']),
      fromUnixTimestamp64Micro(${Math.trunc(noted)} + number, 'UTC'), concat('other', toString(number)), 0
    FROM numbers(60000)`);
  await expectLists("many entries since");

  await dates.note(uploadedAt + SECOND);
  for (const client of clients)
    expect(
      await warehouse.sql(`SELECT uniqExact(date_created) FROM moved_dates WHERE client_id = '${client}'`),
      client,
    ).toBe("9");
  await expectLists("all noted");
});
