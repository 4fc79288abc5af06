import { text } from "node:stream/consumers";
import type { ExportRecord, RecordKind } from "@conversation-export/domain";
import {
  createErasureStore,
  createMovedDates,
  createReader,
  createReconcileStore,
  type ErasureStore,
  type Page,
  type PageQuery,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { conversation, DAY, DAY_0, endUser, message, SECOND } from "../warehouse/records.ts";
import { uploadNow } from "../warehouse/upload-now.ts";
import { readParts } from "../outside/parquet-file.ts";
import { linesFrom } from "../warehouse/read-records.ts";
import { readView } from "../warehouse/view-rows.ts";
import { splitRecords } from "../compare/split-records.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

/** Records created before it are erased. */
const ASKED = DAY_0 + 10 * DAY;
const WINDOW = { since: DAY_0 - DAY, to: DAY_0 + 100 * DAY, wholeTies: false };
const VIEW_IDS = {
  conversations: "conversation_id",
  messages: "message_id",
  end_users: "end_user_id",
  handoffs: "conversation_id",
};
const KINDS = ["conversation", "message", "end_user"] as const satisfies readonly RecordKind[];

let warehouse: Warehouse;
let store: ErasureStore;
beforeAll(async () => {
  warehouse = await startWarehouse();
  store = createErasureStore({ session: warehouse.session("jobs"), runUpload: uploadNow });
});
afterAll(() => warehouse?.stop());

const write = async (records: readonly ExportRecord[], uploadedAt?: number): Promise<void> => {
  for (const type of new Set(records.map((record) => record.type)))
    await warehouse.write(
      records.filter((record) => record.type === type),
      uploadedAt,
    );
};

const idsOf = (texts: readonly string[]): string[] =>
  texts
    .map((record) => JSON.parse(record) as { _id?: string; end_user_id?: string })
    .map(({ _id: id, end_user_id: endUserId }) => id ?? endUserId ?? "")
    .toSorted();

const readAll = async (
  client: string,
  pageSize: number,
  reader = warehouse.reader,
): Promise<Record<string, string[]>> => {
  const query = { ...WINDOW, clientId: client, pageSize };
  const pages = async (read: (one: PageQuery) => Promise<Page>): Promise<string[]> => {
    const walked = await walk(read, query);
    // A link never leads to an empty page.
    if (walked.pages.length > 1) expect(walked.pages.at(-1)?.rows).toBeGreaterThan(0);
    return idsOf(walked.records);
  };
  const seen: Record<string, string[]> = {
    created: await pages(reader.conversationsByCreation),
    updated: await pages(reader.conversationsByUpdate),
    messages: await pages(reader.messagesByCreation),
    "messages of c1": await pages((one) => reader.messagesByCreation({ ...one, conversationId: "c1" })),
    "messages of kept": await pages((one) => reader.messagesByCreation({ ...one, conversationId: "kept" })),
  };
  const steps = {
    conversations: reader.lines.conversations({ ...query, filter: "created" }),
    "updated conversations": reader.lines.conversations({ ...query, filter: "updated" }),
    messages: reader.lines.messages(query),
    "messages of c1": reader.lines.messages({ ...query, conversationId: "c1" }),
  };
  for (const [list, open] of Object.entries(steps)) seen[`lines of ${list}`] = idsOf(await linesFrom(open));
  for (const externalId of [undefined, "x1"]) {
    const found: string[] = [];
    for (let from: string | null = ""; from !== null; ) {
      const own = externalId === undefined ? {} : { externalId };
      const page = await reader.endUsers({ clientId: client, from, limit: pageSize, ...own });
      found.push(...splitRecords(await text(page.records)));
      from = page.end().next;
    }
    seen[externalId === undefined ? "end users" : "end users by external id"] = idsOf(found);
  }
  for (const kind of KINDS) {
    const found: string[] = [];
    for (let [after, isLast] = [{ date: 0, id: "" }, false]; !isLast; ) {
      const page = await reader.changes({ clientId: client, kind, after, stableUpTo: WINDOW.to, pageSize });
      found.push(...splitRecords(await text(page.records)));
      ({ next: after, isLast } = page.end());
    }
    seen[`changes of ${kind}s`] = idsOf(found);
  }
  for (const [view, id] of Object.entries(VIEW_IDS)) {
    const rows = await readView(warehouse, view, `client_id, ${id} AS id`);
    seen[`view ${view}`] = rows.flatMap((row) => (row["client_id"] === client ? [String(row["id"])] : []));
    seen[`view ${view}`]?.sort();
  }
  if (pageSize < 100) return seen;
  const bounds = { clientId: client, since: WINDOW.since, to: WINDOW.to };
  const changed = { clientId: client, after: { date: 0, id: "" }, stableUpTo: WINDOW.to };
  const files = {
    created: reader.parquet.conversations({ ...bounds, filter: "created" }),
    updated: reader.parquet.conversations({ ...bounds, filter: "updated" }),
    "messages of kept": reader.parquet.messages({ ...bounds, conversationId: "kept" }),
    "end users by external id": reader.parquet.endUsers({ clientId: client, externalId: "x1" }),
    "changes of messages": reader.parquet.changes({ ...changed, kind: "message" }),
  };
  for (const [name, open] of Object.entries(files)) {
    const { rows } = await readParts(open);
    expect(idsOf(rows.map((row) => JSON.stringify(row))), `${name} as Parquet`).toEqual(seen[name]);
  }
  return seen;
};

const HANDOFFS = [{ id: "h", date_created: "2026-10-04T00:00:00Z" }];

const ann = (client: string, later: boolean, tag: string): ExportRecord[] => {
  const at = { client, time: DAY_0 + (later ? 50 * DAY : DAY) };
  const created = (later ? ASKED : DAY_0) + SECOND;
  return [
    conversation(at, `c1${tag}`, created, created, { end_user_id: "u-ann", handoffs: HANDOFFS }),
    conversation(at, `c2${tag}`, created, created, { chatter_id: "ann" }),
    message(at, `m1${tag}`, created, `c1${tag}`),
    message(at, `m2${tag}`, created, "kept", { chatter_id: "ann" }),
    message(at, `m3${tag}`, created, "kept", { sender: "ann", recipient: "bot" }),
    message(at, `m4${tag}`, created, "kept", { sender: "bot", recipient: "ann" }),
  ];
};
const others = (client: string): ExportRecord[] => {
  const at = { client, time: DAY_0 };
  return [
    ...["a-kept", "kept", "z-kept"].map((id) =>
      conversation(at, id, DAY_0 + SECOND, DAY_0 + SECOND, { chatter_id: "bob" }),
    ),
    ...["a-kept", "m-kept", "z-kept"].map((id) => message(at, id, DAY_0 + SECOND, "kept", { sender: "bob" })),
    ...["a-kept", "z-kept"].map((id) =>
      endUser(at, id, { profile: { email: "bob@example.com", system_properties: { crm: "x1" } } }),
    ),
  ];
};
const people = (client: string, tag: string): ExportRecord[] => [
  endUser({ client, time: DAY_0 }, `u-ann${tag}`, {
    profile: { email: " Ann@Example.com", system_properties: { crm: "x1" } },
  }),
];

const hide = async (client: string): Promise<void> => {
  const one = { clientId: client, createdBefore: ASKED, requestId: "r" };
  const run = { id: `${client}/1`, erases: false };
  await warehouse.sql(`INSERT INTO data_subject_requests (client_id, request_id, version, request_type, status)
    VALUES ('${client}', 'r', 1, 'ERASURE', 'running')`);
  await store.note(run, [
    { ...one, subject: "email:ann@example.com" },
    { ...one, subject: "chatter_id:ann" },
  ]);
  await store.collect(run);
  await store.hide(run);
  await warehouse.sql("TRUNCATE TABLE data_subject_requests");
};
const forget = (): Promise<void> =>
  store.forget({ id: "another", erases: true }, new AbortController().signal);

it("leaves out what is hidden in every list, late rows included, and nothing else", async () => {
  const client = "hides";
  await write([...others(client), ...ann(client, true, "-later")]);
  const expected = await readAll(client, 100);
  expect(expected["created"]).toEqual(["a-kept", "c1-later", "c2-later", "kept", "z-kept"]);
  expect(expected["messages of kept"]).toHaveLength(6);
  await write([...ann(client, false, ""), ...people(client, "")]);
  await write([...others("neighbour"), ...ann("neighbour", false, ""), ...people("neighbour", "")]);
  const neighbour = await readAll("neighbour", 100);
  expect((await readAll(client, 100))["messages"]).toHaveLength(11);

  await hide(client);
  const at = { client, time: DAY_0 + 2 * DAY };
  await write(
    [...ann(client, false, "-late"), ...people(client, "-late")].filter(({ id }) => id !== "m1-late"),
  );
  await write([
    conversation(at, "c1", DAY_0 + SECOND, DAY_0 + 2 * DAY),
    conversation(at, "c2", DAY_0 + 2 * DAY, DAY_0 + 2 * DAY),
    message(at, "m1", DAY_0 + 2 * DAY, "kept"),
    message(at, "m5", DAY_0 + 2 * DAY, "c1"),
  ]);
  for (const size of [1, 2, 100]) expect(await readAll(client, size), `pages of ${size}`).toEqual(expected);
  expect(await readAll("neighbour", 100)).toEqual(neighbour);

  // Reconciliation must treat them as gone, though they are stored.
  const reconcile = createReconcileStore({
    session: warehouse.session("jobs"),
    now: Date.now,
    holder: "test",
  });
  const present = async (): Promise<string[]> => {
    const records = [
      ...others(client),
      ...ann(client, false, "-late"),
      ...ann(client, false, ""),
      ...people(client, ""),
    ];
    const found: string[] = [];
    for (const [type, ofType] of Map.groupBy(records, (record) => record.type)) {
      const answers = await reconcile.present(type, ofType);
      found.push(...ofType.filter((_, at) => answers[at]).map(({ id }) => id));
    }
    return found.toSorted();
  };
  const kept = ["a-kept", "a-kept", "a-kept", "kept", "m-kept", "z-kept", "z-kept", "z-kept"];
  expect(await present()).toEqual(kept);

  // An unknown request is not one that has ended.
  await warehouse.sql("SYSTEM START MERGES");
  await forget();
  expect(await readAll(client, 100)).toEqual(expected);
  await warehouse.sql(`INSERT INTO data_subject_requests (client_id, request_id, version, request_type, status)
    VALUES ('${client}', 'r', 1, 'ERASURE', 'completed')`);
  await forget();
  expect(await present()).toEqual(
    [
      ...kept,
      "c1",
      "c1-late",
      "c2",
      "c2-late",
      "m1",
      "m2",
      "m2-late",
      "m3",
      "m3-late",
      "m4",
      "m4-late",
      "u-ann",
    ].toSorted(),
  );
  const shown = await readAll(client, 100);
  expect(shown["created"]).toEqual([
    "a-kept",
    "c1",
    "c1-late",
    "c1-later",
    "c2",
    "c2-late",
    "c2-later",
    "kept",
    "z-kept",
  ]);
  expect(shown["end users"]).toEqual(["a-kept", "u-ann", "u-ann-late", "z-kept"]);
});

it("shows a record under the date that it has been given after the request", async () => {
  const client = "moved";
  await write([...others(client), ...ann(client, false, ""), ...people(client, "")]);
  await hide(client);
  await write([conversation({ client, time: ASKED + DAY }, "c2", ASKED + SECOND, ASKED + SECOND)]);
  expect((await readAll(client, 1))["created"]).toEqual(["a-kept", "c2", "kept", "z-kept"]);
  expect((await readAll(client, 100))["updated"]).toEqual(["a-kept", "c2", "kept", "z-kept"]);
  expect((await readAll(client, 100))["changes of conversations"]).toEqual([
    "a-kept",
    "c2",
    "kept",
    "z-kept",
  ]);
});

it("reads pages of a client with more erased records than ClickHouse puts into an array", async () => {
  const client = "many";
  await write([...others(client), ...ann(client, false, ""), ...people(client, "")]);
  for (const kind of ["conversation", "message", "chatter_id"]) {
    await warehouse.sql(`INSERT INTO erasure_keys (client_id, kind, id, created_before, request_id, phase)
      SELECT '${client}', '${kind}', concat('x', toString(number)), now64(6), 'r', 'erased' FROM numbers(1000001)`);
  }
  await hide(client);
  const read = await readAll(client, 100);
  expect(read["created"]).toEqual(["a-kept", "kept", "z-kept"]);
  expect(read["updated"]).toEqual(read["created"]);
  expect(read["messages"]).toEqual(["a-kept", "m-kept", "z-kept"]);
  expect(read["changes of messages"]).toEqual(read["messages"]);
  expect(read["lines of conversations"]).toEqual(read["created"]);

  // The query used while dates are recorded finds them as well.
  await createMovedDates({ session: warehouse.session("jobs") }).note(Date.now() * 1_000);
  const reader = createReader({ session: warehouse.session("reader"), lookups: warehouse.session("lookup") });
  for (const size of [1, 100]) expect(await readAll(client, size, reader), `pages of ${size}`).toEqual(read);
  await warehouse.sql("TRUNCATE TABLE watermarks");
});
