import type { ExportRecord } from "@conversation-export/domain";
import { createMovedDates, type PageQuery } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDS } from "../system/shards.ts";
import { seedOfRun, bySize } from "../system/size.ts";
import { type Arrival, expectConversations, expectMessages } from "../warehouse/expected.ts";
import { createRandom } from "../sample/values/random.ts";
import { conversation, DAY, DAY_0, message, SECOND } from "../warehouse/records.ts";
import { expectedRow, readView, type Row, VIEWS } from "../warehouse/view-rows.ts";
import { idsOf, linesFrom, parquetFrom } from "../warehouse/read-records.ts";
import { readPage } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

const CLIENT = "acme";
const IDS = bySize(15, 200);
const POLLS = bySize(3, 100);
const EXPORTS = bySize(60, 2_000);
const WINDOW = { since: DAY_0 - 100 * DAY, to: DAY_0 + 100 * DAY };
const QUERY: PageQuery = { clientId: CLIENT, ...WINDOW, pageSize: 10_000, wholeTies: false };

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
  await warehouse.sql("SYSTEM START MERGES");
});
afterAll(() => warehouse?.stop());

const conversationReads: Readonly<Record<string, () => Promise<string[]>>> = {
  created: async () => readPage(await warehouse.reader.conversationsByCreation(QUERY)),
  "created, whole ties": async () =>
    readPage(await warehouse.reader.conversationsByCreation({ ...QUERY, wholeTies: true })),
  updated: async () => readPage(await warehouse.reader.conversationsByUpdate(QUERY)),
  lines: () =>
    linesFrom(warehouse.reader.lines.conversations({ clientId: CLIENT, filter: "created", ...WINDOW })),
};
const updatedAsParquet = (): Promise<string[]> =>
  parquetFrom(warehouse.reader.parquet.conversations({ clientId: CLIENT, filter: "updated", ...WINDOW }));
const messageReads: Readonly<Record<string, () => Promise<string[]>>> = {
  created: async () => readPage(await warehouse.reader.messagesByCreation(QUERY)),
  lines: () => linesFrom(warehouse.reader.lines.messages({ clientId: CLIENT, ...WINDOW })),
};

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
  const arrivals: Arrival<ExportRecord>[] = [];
  const messageArrivals: Arrival<ExportRecord>[] = [];
  const readable = new Set<string>();
  let offset = 0;
  const polls: Record<string, number> = {};
  let writing = true;
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
      code: "c",
      read,
    })),
    ...Object.entries(messageReads).map(([name, read]) => ({ name: `messages ${name}`, code: "m", read })),
    { name: "conversations updated as Parquet", code: "c", read: updatedAsParquet },
    { name: "view of conversations", code: "c", read: idsInView("conversations", "conversation_id") },
    { name: "view of messages", code: "m", read: idsInView("messages", "message_id") },
  ];
  const poll = async ({ name, code, read }: (typeof reads)[number]): Promise<void> => {
    for (let times = 0; writing; times += 1) {
      const before = [...readable].map((number) => `${code}${number}`);
      const ids = idsOf(await read());
      // A view reads twice: a record that moves in between may be missing, or repeated over shards.
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
});
