import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import {
  createMovedDates,
  createReader,
  type MessagePageQuery,
  type PageQuery,
  type Reader,
  type Session,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conversation, DAY, DAY_0, message, SECOND } from "../warehouse/records.ts";
import { idsOf, linesFrom, parquetFrom } from "../warehouse/read-records.ts";
import { splitRecords } from "../compare/split-records.ts";
import { readPage } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
  await warehouse.sql("SYSTEM START MERGES");
});
afterAll(() => warehouse?.stop());

/** `between` runs when `question` is answered, before the reader goes on. */
const readerWith = (between: () => Promise<void>, question = "pages.conditions"): Reader => {
  const session = warehouse.session("reader");
  const stream: Session["stream"] = async (name, query, options) => {
    const answer = await session.stream(name, query, options);
    if (name !== question) return answer;
    // The query is answered once its result has been read.
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

const readsAtOnce: Readonly<Record<string, (reader: Reader, window: Window) => Promise<string[]>>> = {
  "conversations created": async (reader, window) =>
    readPage(await reader.conversationsByCreation(inWindow(window))),
  "conversations created, whole ties": async (reader, window) =>
    readPage(await reader.conversationsByCreation(inWindow(window, { wholeTies: true }))),
  "conversations updated": async (reader, window) =>
    readPage(await reader.conversationsByUpdate(inWindow(window))),
  "conversations lines": (reader, window) =>
    linesFrom(reader.lines.conversations({ ...window, filter: "created" })),
  "conversations lines, updated": (reader, window) =>
    linesFrom(reader.lines.conversations({ ...window, filter: "updated" })),
  "messages created": async (reader, window) => readPage(await reader.messagesByCreation(inWindow(window))),
  "messages of a conversation": async (reader, window) =>
    readPage(await reader.messagesByCreation(inWindow(window, CONVERSATION))),
  "messages lines": (reader, window) => linesFrom(reader.lines.messages(window)),
  "messages lines, of a conversation": (reader, window) =>
    linesFrom(reader.lines.messages({ ...window, ...CONVERSATION })),
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

/** Names of clients begin with the list that they read. */
const isOfMessages = (client: string): boolean => client.startsWith("messages");
const isOfConversations = (client: string): boolean => !isOfMessages(client);

/** The later `time`, the newer. */
type Written = { readonly client: string; readonly time: number; readonly created: number };

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
      // With several dates it is looked up as it is now; else shown as it was, so that none is missed.
      const hasLeft = one.wasMoved && !one.place.endsWith("in the window");
      const shown = idsOf(await read(reader, window)).toSorted();
      expect(shown, client).toEqual(hasLeft ? ["a", "c"] : ["a", "b", "c"]);
    }
  });
});

const QUESTIONS = [
  { question: "pages.exceptions", noted: "before" },
  { question: "pages.exceptions", noted: "since" },
  { question: "pages.moved", noted: "since" },
] as const;

it.each(
  Object.entries(readsAtOnce),
)("%s: a record that moves while its dates are stored is never there twice", async (name, read) => {
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
    // A further query covers records with exports since, which finds this one.
    const isFound = wasMoved || (question === "pages.exceptions" && when === "since");
    const hasLeft = isFound && !place.endsWith("in the window");
    const shown = idsOf(await read(readerWith(move, question), window)).toSorted();
    expect(shown, client).toEqual(hasLeft ? ["a", "c"] : ["a", "b", "c"]);
    expect(times, client).toBe(1);
  }
  await warehouse.sql("TRUNCATE TABLE watermarks");
});

const all = () => ({ after: { date: 0, id: "" }, stableUpTo: (Date.now() + 60_000) * 1_000 });

const feedFrom =
  (kind: "conversation" | "message") =>
  async (reader: Reader, { clientId }: Window): Promise<string[]> => {
    const page = await reader.changes({ clientId, kind, ...all(), pageSize: 100 });
    return splitRecords(await text(page.records));
  };

it("a record that has moved is given out as it is, whether its dates are known or not", async () => {
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
  // Each id names its distance and how many of its two dates are recorded.
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
  // Further back than dates are recorded at once.
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
