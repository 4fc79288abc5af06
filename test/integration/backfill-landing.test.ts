import {
  busPositionOf,
  type ConversationRecord,
  END_OF_TIME,
  type EventType,
  type ExportRecord,
  formatTimestamp,
  type HandoffEntry,
  type Micros,
  processEvent,
} from "@conversation-export/domain";
import { createLogger } from "@conversation-export/runtime";
import {
  createBatch,
  createLandingStore,
  createRecordReader,
  createRowReplacer,
  type LandingSelection,
  type RecordReader,
  type RowReplacer,
} from "@conversation-export/warehouse";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createCorrectRecords, createPendingWrites } from "@conversation-export/jobs";
import {
  type Delivered,
  fold,
  type Folded,
  normaliseExported,
  windowCreated,
  windowUpdated,
} from "../reference/index.ts";
import { bySize } from "../system/size.ts";
import { createSample, type RecordKind } from "../sample/index.ts";
import { createRandom, seed, shuffled } from "../warehouse/random.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { ROWS_WITHOUT_DATE } from "../system/record-dates.ts";
import { uploadNow } from "../warehouse/upload-now.ts";

const CLIENTS = ["acme", "globex"];
const HOUR = 3_600_000_000;
const TYPES: Readonly<Record<RecordKind, EventType>> = {
  conversation: "conversation.exported",
  message: "message.exported",
  end_user: "end_user.exported",
};
const TOPICS = { conversation: "conversations", message: "messages", end_user: "end-users" } as const;
const RECORD_TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"];

type Event = { readonly delivered: Delivered; readonly type: EventType };
type Taken = Event & { readonly record: ExportRecord };

let warehouse: Warehouse;
let reader: RecordReader;
let replacer: RowReplacer;

beforeAll(async () => {
  warehouse = await startWarehouse();
  const session = warehouse.session("jobs");
  reader = createRecordReader({ session });
  replacer = createRowReplacer({ session, runUpload: uploadNow });
});
afterAll(async () => {
  replacer?.stop();
  await warehouse?.stop();
});
beforeEach(async () => {
  await warehouse.sql("SYSTEM START MERGES");
  for (const table of [...RECORD_TABLES, "record_dates", "landing"])
    await warehouse.sql(`TRUNCATE TABLE ${table}`);
});

afterEach(async () => {
  expect(await warehouse.sql(ROWS_WITHOUT_DATE)).toBe("");
});

const deliver = (salt: string, conversations: number): Event[] => {
  const sample = createSample({
    seed: `${seed} ${salt}`,
    conversations,
    messagesPerConversation: 3,
    exportsPerConversation: 2.5,
    clients: CLIENTS,
    endUsers: 30,
    unusualShare: 0.3,
    lateShare: 0.2,
    duplicateShare: 0.1,
    poisonShare: 0,
    nullShare: 0,
  });
  const offsets = new Map<string, number>();
  return [...sample].map((event) => {
    const topic = TOPICS[event.kind];
    const offset = offsets.get(topic) ?? 0;
    offsets.set(topic, offset + 1);
    const { value, headers } = event;
    return { delivered: { event: { value, headers }, topic, partition: 0, offset }, type: TYPES[event.kind] };
  });
};

const process = ({ delivered, type }: Event): ExportRecord => {
  const { event, topic, partition, offset } = delivered;
  const position = busPositionOf({ topic, partition, offset, headers: event.headers });
  const text = Buffer.from(event.value ?? []).toString();
  const outcome = processEvent({ text, headers: event.headers, position }, type);
  if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome.record;
};

/** Inserts records as ingest does, with the events that they came from. */
const write = async (taken: readonly Taken[], uploadedAt: Micros): Promise<void> => {
  for (const type of Object.values(TYPES)) {
    const batch = createBatch(type, 1 << 16, { landingDays: 14 });
    for (const { delivered, record } of taken) {
      if (record.type !== type) continue;
      const { topic, partition, offset, event } = delivered;
      batch.add(record, {
        topic,
        partition,
        offset,
        key: null,
        value: Buffer.from(event.value ?? []),
        headers: event.headers as Record<string, string>,
        timestamp: Date.now(),
      });
    }
    batch.fillUpload(uploadedAt);
    for (const insert of batch.inserts(0, batch.records())) await warehouse.writer.insert(insert);
  }
};

const EVERYTHING: LandingSelection = {
  clientId: null,
  range: { by: "upload", from: 0, to: END_OF_TIME },
  exported: null,
  share: { index: 0, of: 1 },
};
const COVERED = { since: 0, asOf: END_OF_TIME };
const now = (): Micros => Date.now() * 1000;

const correctWith = (
  own: RecordReader = reader,
  suppresses: (record: ExportRecord) => boolean = () => false,
  others: Partial<Parameters<typeof createCorrectRecords>[0]> = {},
) =>
  createCorrectRecords({
    reader: own,
    replacer,
    gate: {
      suppresses: async (records) => records.map(suppresses),
      wouldSuppress: async (records) => records.map(suppresses),
      untilOpen: () => Promise.resolve({ notAfter: Date.now() + 60_000, uploadFrom: 0 }),
      uploadTime: now,
    },
    pending: createPendingWrites(),
    ...others,
  });
const options = {
  dryRun: false,
  coverage: COVERED,
  signal: new AbortController().signal,
  log: createLogger({ service: "test", level: "error" }),
  onEvents: () => {},
};

const sum = (rows: Readonly<Record<string, number>>): number =>
  Object.values(rows).reduce((a, b) => a + b, 0);

/** All lists as readers get them, without upload instants. */
const shown = async (): Promise<Record<string, unknown>> => {
  const lists: Record<string, unknown> = {};
  for (const clientId of CLIENTS) {
    const query = { clientId, since: 0, to: END_OF_TIME, pageSize: 500, wholeTies: false };
    for (const list of ["conversationsByCreation", "conversationsByUpdate", "messagesByCreation"] as const) {
      const { records } = await walk(warehouse.reader[list], query);
      lists[`${clientId} ${list}`] = records.map((text) => normaliseExported(text).json);
    }
  }
  const users = await warehouse.sql("SELECT record FROM end_users FINAL ORDER BY client_id, end_user_id");
  return { ...lists, users };
};
const expected = (folded: Folded): Record<string, unknown> => {
  const lists: Record<string, unknown> = {};
  const [from, to] = [0n, BigInt(END_OF_TIME)];
  const texts = (list: readonly { json: string }[]): string[] => list.map(({ json }) => json);
  for (const client of CLIENTS) {
    lists[`${client} conversationsByCreation`] = texts(windowCreated(folded.conversations, client, from, to));
    lists[`${client} conversationsByUpdate`] = texts(windowUpdated(folded.conversations, client, from, to));
    lists[`${client} messagesByCreation`] = texts(windowCreated(folded.messages, client, from, to));
  }
  return lists;
};

/** A hash over a NULL column is NULL. */
const WHOLE_ROW = "toString(tuple(*))";
/** The stored rows. */
const rowsOf = (table: string): Promise<string> =>
  warehouse.sql(`SELECT cityHash64(${WHOLE_ROW}) AS row FROM ${table} ORDER BY row`);
const allRows = async (): Promise<string[]> => Promise.all(RECORD_TABLES.map(rowsOf));

const later = (record: ConversationRecord | Extract<ExportRecord, { type: "message.exported" }>) => {
  const dateCreated = record.dateCreated + 3 * HOUR;
  const [was, is] = [record.dateCreated, dateCreated].map((at) => `"date_created":"${formatTimestamp(at)}"`);
  return {
    ...record,
    dateCreated,
    beforeUpload: record.beforeUpload.replace(String(was), String(is)),
  };
};
const handoffAt = (entry: HandoffEntry, dateCreated: Micros): HandoffEntry => ({
  ...entry,
  dateCreated,
  entry: entry.entry.replace(formatTimestamp(entry.dateCreated), formatTimestamp(dateCreated)),
});

/** Bugs of ingest, each on a share of the exports. */
const BUGS: readonly ((record: ExportRecord) => ExportRecord)[] = [
  (record) => (record.type === "end_user.exported" ? record : later(record)),
  (record) =>
    record.type === "conversation.exported"
      ? { ...record, handoffs: record.handoffs.map((entry) => ({ ...entry, target: `${entry.target}?` })) }
      : record,
  (record) =>
    record.type === "conversation.exported"
      ? {
          ...record,
          handoffs: record.handoffs.map((entry) => handoffAt(entry, entry.dateCreated + 5 * HOUR)),
        }
      : record,
  (record) => ({ ...record, version: { ...record.version, exportedAt: record.version.exportedAt + HOUR } }),
  (record) =>
    record.type === "conversation.exported" ? { ...record, tail: `${record.tail.slice(0, -1)} }` } : record,
  (record) =>
    record.type === "conversation.exported" ? { ...record, dateUpdated: record.dateUpdated + HOUR } : record,
  (record) => (record.type === "end_user.exported" ? { ...record, record: "{}", email: "x" } : record),
  (record) =>
    record.type === "message.exported" ? { ...record, conversationId: `${record.conversationId}?` } : record,
];

test("rows that ingest wrote are found as they should be, whatever they hold", async () => {
  const events = deliver("right", bySize(100, 2_000));
  await write(
    events.map((event) => ({ ...event, record: process(event) })),
    now(),
  );
  const before = await allRows();
  const { records, rows, events: read } = await correctWith()(EVERYTHING, options);
  expect(read).toMatchObject({ rejected: 0, suppressed: 0 });
  expect(read.read).toBe(events.length);
  expect(records.examined).toBeGreaterThan(100);
  expect(records.different).toBe(0);
  expect(sum(rows.undeletable)).toBe(0);
  expect(await allRows()).toEqual(before);
});

test("what bugs wrote is put right, merged or not, and a second run changes nothing", async () => {
  const random = createRandom(61);
  const events = deliver("bugs", bySize(100, 2_000));
  const folded = fold(events.map(({ delivered }) => delivered));
  const harmed = shuffled(random, events).map((event) => {
    const record = process(event);
    const bug = random.pick(BUGS);
    return { ...event, record: random.chance(0.4) ? bug(record) : record };
  });
  const half = harmed.length >> 1;
  await write(harmed.slice(0, half), now());
  await write(harmed.slice(half), now());
  for (const table of ["handoffs", "conversations"]) await warehouse.sql(`OPTIMIZE TABLE ${table}`);
  await warehouse.sql("SYSTEM STOP MERGES");
  const wrong = await allRows();
  expect(await shown()).not.toMatchObject(expected(folded));

  const tried = await correctWith()(EVERYTHING, { ...options, dryRun: true });
  expect(tried.records.different).toBeGreaterThan(20);
  expect(await allRows()).toEqual(wrong);
  await warehouse.sql("SYSTEM START MERGES");
  let plans = 0;
  const counted: RowReplacer = {
    ...replacer,
    replace: (...args) => {
      plans += 1;
      return replacer.replace(...args);
    },
  };
  // Plans of a few records each, as for very large records.
  const done = await correctWith(reader, undefined, { replacer: counted, planBytes: 60_000 })(
    EVERYTHING,
    options,
  );
  expect(plans).toBeGreaterThan(4);
  expect(done.records).toEqual(tried.records);
  expect(done.rows).toEqual(tried.rows);
  for (const table of ["conversations", "conversation_updates", "handoffs", "messages"] as const) {
    expect(done.rows.deleted[table], table).toBeGreaterThan(0);
    expect(done.rows.inserted[table], table).toBeGreaterThan(0);
  }
  const deletions = (condition: string): Promise<string> =>
    warehouse.sql(`SELECT count() FROM system.mutations
      WHERE table != 'end_users' AND position(command, 'backfill ') > 0 AND ${condition}`);
  expect(Number(await deletions("position(command, 'IN PARTITION') > 0"))).toBeGreaterThan(0);
  expect(await deletions("position(command, 'IN PARTITION') = 0")).toBe("0");
  const right = await shown();
  expect(right).toMatchObject(expected(folded));
  const told = await warehouse.sql("SELECT uniqExact(client_id, kind, id) FROM changes WHERE deleted");
  expect(Number(told)).toBeGreaterThan(20);

  const before = await allRows();
  const again = await correctWith()(EVERYTHING, options);
  expect(again.records.different).toBe(0);
  expect(await allRows()).toEqual(before);
  for (const table of RECORD_TABLES) await warehouse.sql(`OPTIMIZE TABLE ${table} FINAL`);
  expect(await shown()).toEqual(right);
});

test("rows that may not be deleted stay and are counted, and right ones are added", async () => {
  const events = deliver("old", 60);
  const taken = events.map((event) => ({ ...event, record: process(event) }));
  const bug = BUGS[0] as (record: ExportRecord) => ExportRecord;
  await write(
    taken.map((one) => ({ ...one, record: bug(one.record) })),
    now(),
  );
  const countOf = async (): Promise<number> =>
    Number(await warehouse.sql("SELECT count() FROM conversations"));
  const stored = await countOf();
  const done = await correctWith()(EVERYTHING, { ...options, coverage: null });
  expect(sum(done.rows.deleted)).toBe(0);
  expect(done.rows.undeletable.conversations).toBeGreaterThan(20);
  expect(await countOf()).toBe(stored + done.rows.inserted.conversations);
  expect((await correctWith()(EVERYTHING, { ...options, coverage: null })).records.different).toBe(0);
});

test("a newer export that comes between the two readings stays", async () => {
  const exportsOf = new Map<string, Taken[]>();
  for (const event of deliver("newer", 40)) {
    const record = process(event);
    if (record.type !== "conversation.exported") continue;
    const name = `${record.clientId} ${record.id}`;
    const known = exportsOf.get(name) ?? [];
    const isNewer = known.every((one) => one.record.version.exportedAt < record.version.exportedAt);
    if (isNewer) exportsOf.set(name, [...known, { ...event, record }]);
  }
  const [first, second] = [...exportsOf.values()].find((exports) => exports.length >= 2) ?? [];
  if (first === undefined || second === undefined) throw new Error("no conversation with two exports");
  const wrong = { ...first, record: (BUGS[3] as (record: ExportRecord) => ExportRecord)(first.record) };
  await write([wrong], now());
  let calls = 0;
  const racing: RecordReader = {
    ...reader,
    stored: async (run, type, signal) => {
      const rows = await reader.stored(run, type, signal);
      if (type === "conversation.exported" && calls++ === 0) await write([second], now());
      return rows;
    },
  };
  await correctWith(racing)(EVERYTHING, options);
  const versions = await warehouse.sql("SELECT toUnixTimestamp64Micro(exported_at) FROM conversations FINAL");
  expect(versions).toBe(String(second.record.version.exportedAt));
});

test("readers never miss a handoff while a wrong one of a later date goes, and merges do not drop the right one", async () => {
  const events = deliver("trap", bySize(80, 1_000)).filter(({ type }) => type === "conversation.exported");
  const bug = BUGS[2] as (record: ExportRecord) => ExportRecord;
  await write(
    events.map((event) => ({ ...event, record: bug(process(event)) })),
    now(),
  );
  const targets = "SELECT count() FROM handoffs FINAL";
  const wanted = await warehouse.sql(targets);
  expect(Number(wanted)).toBeGreaterThan(30);
  let isDone = false;
  const counts = new Set<string>();
  const watch = async (): Promise<void> => {
    while (!isDone) counts.add(await warehouse.sql(targets));
  };
  const merge = async (): Promise<void> => {
    // A merge is refused while merges are held.
    while (!isDone) await warehouse.sql("OPTIMIZE TABLE handoffs FINAL").catch(() => {});
  };
  const tried = await correctWith()(EVERYTHING, { ...options, dryRun: true });
  const others = [watch(), merge()];
  const done = await correctWith()(EVERYTHING, options).finally(() => {
    isDone = true;
  });
  await Promise.all(others);
  expect(done.rows.deleted.handoffs).toBeGreaterThan(30);
  // One round was enough: nothing had to be written twice.
  expect(done.rows.inserted.handoffs).toBe(tried.rows.inserted.handoffs);
  expect([...counts]).toEqual([wanted]);
  expect(await shown()).toMatchObject(expected(fold(events.map(({ delivered }) => delivered))));
});

/** Conversations whose handoffs stand under a later date: to put them right, merges are held. */
const writeLateHandoffs = async (salt: string): Promise<Folded> => {
  const events = deliver(salt, 30).filter(({ type }) => type === "conversation.exported");
  const bug = BUGS[2] as (record: ExportRecord) => ExportRecord;
  await write(
    events.map((event) => ({ ...event, record: bug(process(event)) })),
    now(),
  );
  return fold(events.map(({ delivered }) => delivered));
};
const expectNothingHeld = async (): Promise<void> => {
  const waiting = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done";
  expect(await warehouse.sql(waiting)).toBe("0");
  // Refused while merges are held.
  await warehouse.sql("OPTIMIZE TABLE handoffs");
  expect(await warehouse.sql("SELECT count() FROM job_keys")).toBe("0");
};

test("nothing is deleted when the right rows cannot be written while merges are held", async () => {
  const folded = await writeLateHandoffs("hold");
  const before = await allRows();
  const hasty = createRowReplacer({
    session: warehouse.session("jobs"),
    runUpload: uploadNow,
    holdMs: 400,
  });
  const expired = {
    suppresses: async () => [],
    wouldSuppress: async () => [],
    untilOpen: () => Promise.resolve({ notAfter: Date.now() - 60_000, uploadFrom: 0 }),
    uploadTime: now,
  };
  const failing = correctWith(reader, undefined, { replacer: hasty, gate: expired })(EVERYTHING, options);
  await expect(failing).rejects.toMatchObject({ code: "hold_too_long", retryable: true });
  hasty.stop();
  expect(await allRows()).toEqual(before);
  await expectNothingHeld();
  await correctWith()(EVERYTHING, options);
  expect(await shown()).toMatchObject(expected(folded));
});

test("a job that is cancelled while merges are held ends what it has begun", async () => {
  const folded = await writeLateHandoffs("cancelled");
  const cancelling = new AbortController();
  const cancelled: RowReplacer = {
    ...replacer,
    replace: (run, plan, given) => {
      const uploadedAt = (): Micros => {
        cancelling.abort(new Error("cancelled"));
        return given.uploadedAt();
      };
      return replacer.replace(run, plan, { ...given, uploadedAt });
    },
  };
  const { signal } = cancelling;
  const correcting = correctWith(reader, undefined, { replacer: cancelled })(EVERYTHING, {
    ...options,
    signal,
  });
  await expect(correcting).rejects.toThrow("cancelled");
  await expectNothingHeld();
  expect(await shown()).toMatchObject(expected(folded));
});

test("deletions and held merges of a process that died are given up", async () => {
  await writeLateHandoffs("dead");
  const before = await allRows();
  await warehouse.sql("SYSTEM STOP MERGES handoffs");
  const hide = "DELETE FROM handoffs WHERE entry != 'backfill of the dead'";
  await warehouse.sql(`${hide} SETTINGS lightweight_deletes_sync = 0`, "jobs");
  await replacer.recover();
  expect(await allRows()).toEqual(before);
  await expectNothingHeld();
  await warehouse.sql("SYSTEM STOP MERGES handoffs");
  await replacer.start();
  await expectNothingHeld();
});

test("a record that the warehouse refuses stays as it stands, and the others are put right", async () => {
  const taken = deliver("refused", 30)
    .filter(({ type }) => type !== "end_user.exported")
    .map((event) => ({ ...event, record: process(event) }));
  const [late, moved] = [BUGS[2], BUGS[0]] as ((record: ExportRecord) => ExportRecord)[];
  const harm = (record: ExportRecord): ExportRecord =>
    (record.type === "conversation.exported" ? late : moved)?.(record) ?? record;
  await write(
    taken.map((one) => ({ ...one, record: harm(one.record) })),
    now(),
  );
  const withHandoff = taken.find(
    ({ record }) => record.type === "conversation.exported" && record.handoffs.length > 0,
  );
  const message = taken.find(({ record }) => record.type === "message.exported");
  if (withHandoff === undefined || message === undefined) throw new Error("a sample without handoffs");
  // Clients may use the same ids.
  const isRecord = (column: string, { clientId, id }: ExportRecord): string =>
    `(client_id = '${clientId}' AND ${column} = '${id.replace(/['\\]/g, "\\$&")}')`;
  const refused = [
    ["handoffs", isRecord("conversation_id", withHandoff.record)],
    ["messages", isRecord("message_id", message.record)],
  ] as const;
  const rowsOfRefused = () =>
    Promise.all(
      refused.map(([table, isRefused]) =>
        warehouse.sql(
          `SELECT cityHash64(${WHOLE_ROW}) AS row FROM ${table} FINAL WHERE ${isRefused} ORDER BY row`,
        ),
      ),
    );
  const before = await rowsOfRefused();
  for (const [table, isRefused] of refused)
    await warehouse.sql(`ALTER TABLE ${table} ADD CONSTRAINT not_this CHECK NOT ${isRefused}`);
  const done = await correctWith()(EVERYTHING, options);
  expect(done.events.rejected).toBe(2);
  expect(done.problems.map(({ reason }) => reason)).toEqual(["refused_by_warehouse", "refused_by_warehouse"]);
  expect(await rowsOfRefused()).toEqual(before);
  await expectNothingHeld();
  for (const [table] of refused) await warehouse.sql(`ALTER TABLE ${table} DROP CONSTRAINT not_this`);
  // Nothing else was left to do.
  const rest = await correctWith()(EVERYTHING, options);
  expect(rest.records.different).toBe(2);
  expect((await correctWith()(EVERYTHING, options)).records.different).toBe(0);
});

test("suppressed exports are neither written nor deleted", async () => {
  const events = deliver("suppressed", 30).filter(({ type }) => type === "message.exported");
  const taken = events.map((event) => ({ ...event, record: process(event) }));
  await write(taken, now());
  await warehouse.sql("ALTER TABLE messages DELETE WHERE client_id = 'acme' SETTINGS mutations_sync = 2");
  const before = await rowsOf("messages");
  const suppresses = (record: ExportRecord): boolean => record.clientId === "acme";
  const tried: ExportRecord[] = [];
  const gate = {
    suppresses: async (records: readonly ExportRecord[]) => (tried.push(...records), records.map(suppresses)),
    wouldSuppress: async (records: readonly ExportRecord[]) => records.map(suppresses),
    untilOpen: () => Promise.resolve({ notAfter: Date.now() + 60_000, uploadFrom: 0 }),
    uploadTime: now,
  };
  const dry = await correctWith(reader, undefined, { gate })(EVERYTHING, { ...options, dryRun: true });
  expect(dry.events.suppressed).toBeGreaterThan(10);
  expect(tried).toEqual([]);
  const done = await correctWith(reader, undefined, { gate })(EVERYTHING, options);
  expect(done.events.suppressed).toBe(dry.events.suppressed);
  expect(tried.length).toBeGreaterThan(10);
  expect(done.records.different).toBe(0);
  expect(await rowsOf("messages")).toBe(before);
  expect((await correctWith()(EVERYTHING, options)).rows.inserted.messages).toBeGreaterThan(10);
});

test("a selection takes the events of a client, a share, a range or a time of export", async () => {
  const events = deliver("selection", 40);
  const taken = events.map((event) => ({ ...event, record: process(event) }));
  await write(taken, now());
  const count = async (selection: Partial<LandingSelection>): Promise<number> => {
    const stretches = await reader.count({ ...EVERYTHING, ...selection }, 10_000_000, options.signal);
    return stretches.reduce((all, one) => all + one.events, 0);
  };
  const matching = (test: (one: Taken) => boolean): number =>
    new Set(taken.filter(test).map(({ delivered: { topic, offset } }) => `${topic} ${offset}`)).size;
  expect(await count({})).toBe(events.length);
  expect(await count({ clientId: "acme" })).toBe(matching(({ record }) => record.clientId === "acme"));
  const shares = [0, 1, 2].map((index) => count({ share: { index, of: 3 } }));
  expect((await Promise.all(shares)).reduce((a, b) => a + b, 0)).toBe(events.length);
  const range = { by: "offsets", topic: "messages", partition: 0, from: 5, to: 25 } as const;
  expect(await count({ range })).toBe(20);
  const times = taken.map(({ record }) => record.version.exportedAt).sort((a, b) => a - b);
  const exported = { from: times[20] ?? 0, to: times[60] ?? 0 };
  const inside = matching(
    ({ record: { version } }) => version.exportedAt >= exported.from && version.exportedAt < exported.to,
  );
  const found = await count({ exported });
  // Numbers that ClickHouse cannot read keep it from reading the event.
  expect(found).toBeGreaterThanOrEqual(inside);
  expect(found).toBeLessThan(inside * 2);
});

test("the landing store covers what was written", async () => {
  const [event] = deliver("coverage", 1);
  if (event === undefined) throw new Error("no event");
  const uploadedAt = now();
  await write([{ ...event, record: process(event) }], uploadedAt);
  const landing = createLandingStore({ session: warehouse.session("jobs") });
  expect((await landing.coverage())?.since).toBe(uploadedAt);
});
