import {
  busPositionOf,
  type ExportRecord,
  END_OF_TIME,
  type EventType,
  formatTimestamp,
  type HandoffEntry,
  type Micros,
  processEvent,
} from "@conversation-export/domain";
import { createLogger, ServiceError } from "@conversation-export/runtime";
import {
  backfillJob,
  type BackfillCounts,
  type BackfillData,
  type JobContext,
} from "@conversation-export/queue";
import {
  type BackfillRuns,
  createBackfillRuns,
  createBatch,
  createLandingStore,
  createRightRows,
  createWrongRows,
  type LandingCoverage,
  type LandingSelection,
  type RunUpload,
  type WrongRows,
} from "@conversation-export/warehouse";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  addUp,
  createCorrectRecords,
  createLandingBackfill,
  type LandingBackfill,
} from "@conversation-export/jobs";
import { type Delivered, fold, normaliseExported, windowCreated, windowUpdated } from "../reference/index.ts";
import { compareUtf8 } from "../reference/order.ts";
import { bySize } from "../system/size.ts";
import { createSample, type RecordKind } from "../sample/index.ts";
import { createRandom, seed, shuffled } from "../warehouse/random.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { ROWS_WITHOUT_DATE } from "../system/record-dates.ts";
import { SHARDS } from "../system/shards.ts";
import { until } from "../system/until.ts";
import { ticketNow, uploadNow } from "../warehouse/upload-now.ts";

const CLIENTS = ["acme", "globex"];
const HOUR = 3_600_000_000;
const TYPES: Readonly<Record<RecordKind, EventType>> = {
  conversation: "conversation.exported",
  message: "message.exported",
  end_user: "end_user.exported",
};
const TOPICS = { conversation: "conversations", message: "messages", end_user: "end-users" } as const;
const RECORD_TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"];

type Taken = { readonly delivered: Delivered; readonly type: EventType; readonly record: ExportRecord };
type Bug = (record: ExportRecord) => ExportRecord;

let warehouse: Warehouse;
let runs: BackfillRuns;
let wrong: WrongRows;

beforeAll(async () => {
  warehouse = await startWarehouse();
  const session = warehouse.session("jobs");
  runs = createBackfillRuns({ session });
  wrong = createWrongRows({ session, runUpload: uploadNow, holder: "here" });
});
afterAll(async () => {
  await warehouse?.stop();
});
beforeEach(async () => {
  await warehouse.sql("SYSTEM START MERGES");
  for (const table of [...RECORD_TABLES, "record_dates", "changes", "landing", "backfill_rows", "job_keys"])
    await warehouse.sql(`TRUNCATE TABLE ${table}`);
});

afterEach(async () => {
  expect(await warehouse.sql(ROWS_WITHOUT_DATE)).toBe("");
});

const deliver = (salt: string, conversations: number, nonstandardShare = 0.3): Taken[] => {
  const sample = createSample({
    seed: `${seed} ${salt}`,
    conversations,
    messagesPerConversation: 3,
    exportsPerConversation: 2.5,
    clients: CLIENTS,
    endUsers: 30,
    nonstandardShare,
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
    const type = TYPES[event.kind];
    const position = busPositionOf({ topic, partition: 0, offset, headers });
    const outcome = processEvent({ text: String(value), headers, position }, type);
    if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
    const delivered = { event: { value, headers }, topic, partition: 0, offset };
    return { delivered, type, record: outcome.record };
  });
};
const messagesOf = (salt: string, conversations: number): Taken[] =>
  deliver(salt, conversations).filter(({ type }) => type === "message.exported");

const now = (): Micros => Date.now() * 1000;

const write = async (taken: readonly Taken[], uploadedAt = now(), timestamp = Date.now()): Promise<void> => {
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
        headers: event.headers,
        timestamp,
      });
    }
    batch.fillUpload(uploadedAt);
    for (const insert of batch.inserts(0, batch.records()))
      await warehouse.writer.insert(insert, ticketNow());
  }
};

const ALL_EVENTS: LandingSelection = {
  clientId: null,
  range: { by: "upload", from: 0, to: END_OF_TIME },
  exported: null,
};
const EVERYTHING = backfillJob.data.parse({ source: { kind: "landing" } });
const COVERED: LandingCoverage = { since: 0, asOf: END_OF_TIME };

type Gate = Parameters<typeof createCorrectRecords>[0]["gate"];
const gateThat = (suppresses: (record: ExportRecord) => boolean): Gate => ({
  suppresses: async (records) => records.map(suppresses),
  wouldSuppress: async (records) => records.map(suppresses),
  ticket: () => Promise.resolve({ stamp: now(), generation: 0 }),
  judgement: () => 0,
});

type Changes = {
  readonly runs?: BackfillRuns;
  readonly wrong?: WrongRows;
  readonly gate?: Gate;
  readonly runUpload?: RunUpload;
  readonly stableUpTo?: Micros;
  readonly coverage?: LandingCoverage | null;
  readonly planBytes?: number;
  readonly isOver?: (job: string) => Promise<boolean>;
  readonly alive?: readonly string[];
  readonly onCoverage?: () => void;
};
const backfillWith = (changes: Changes): LandingBackfill => {
  const own = changes.runs ?? runs;
  return createLandingBackfill({
    runs: own,
    wrong: changes.wrong ?? wrong,
    landing: {
      coverage: async () => {
        changes.onCoverage?.();
        return changes.coverage === undefined ? COVERED : changes.coverage;
      },
    },
    stable: { load: async () => ({ until: changes.stableUpTo ?? END_OF_TIME, watermarks: {} }) },
    correct: createCorrectRecords({
      runs: own,
      rows: createRightRows({ session: warehouse.session("jobs") }),
      gate: changes.gate ?? gateThat(() => false),
      runUpload: changes.runUpload ?? uploadNow,
      ...(changes.planBytes === undefined ? {} : { planBytes: changes.planBytes }),
    }),
    exclusive: { run: (_, signal, work) => work(signal) },
    isOver: changes.isOver ?? (async () => true),
    alive: async () => new Set(changes.alive ?? ["here"]),
    typeOf: (topic) => (topic === "messages" ? "message.exported" : undefined),
    maxTimeAheadMs: 0,
    now: () => 0,
    elapsed: () => performance.now(),
    partEvents: 100,
  });
};
const { signal } = new AbortController();
const contextOf = <D>(data: D): JobContext<D> => ({
  id: "job",
  data,
  attempt: 1,
  signal,
  log: createLogger({ service: "test", level: "error" }),
  state: undefined,
  save: () => Promise.resolve(),
  progress: () => Promise.resolve(),
});
const correctWith =
  (changes: Changes = {}, between = () => Promise.resolve()) =>
  async (data: BackfillData): Promise<BackfillCounts> => {
    const backfill = backfillWith(changes);
    const { dryRun } = data;
    const parts = await backfill.split(contextOf(data));
    const counts: BackfillCounts[] = [];
    for (const part of parts) counts.push(await backfill.runPart(contextOf(data), part, dryRun));
    await between();
    if (parts[0] !== undefined) counts.push(await backfill.finish(contextOf(data), parts[0], dryRun));
    await backfill.forget(contextOf(data));
    return addUp(counts);
  };
const ROW = { table: "messages", date: 0, target: "", targetKind: 0, version: 1n } as const;
const DRY: BackfillData = { ...EVERYTHING, dryRun: true };

const sum = (rows: Readonly<Record<string, number>>): number =>
  Object.values(rows).reduce((a, b) => a + b, 0);

type Lists = Readonly<Record<string, readonly string[]>>;

const shown = async (): Promise<Lists> => {
  const lists: Record<string, string[]> = {};
  for (const clientId of CLIENTS) {
    const query = { clientId, since: 0, to: END_OF_TIME, pageSize: 500, wholeTies: false };
    for (const list of ["conversationsByCreation", "conversationsByUpdate", "messagesByCreation"] as const) {
      const { records } = await walk(warehouse.reader[list], query);
      lists[`${clientId} ${list}`] = records.map((text) => normaliseExported(text).json);
    }
    const users = await warehouse.sql(`SELECT record FROM end_users FINAL WHERE client_id = '${clientId}'
      ORDER BY end_user_id FORMAT TSVRaw`);
    lists[`${clientId} endUsers`] = users
      .split("\n")
      .filter(Boolean)
      .map((text) => normaliseExported(text).json);
  }
  return lists;
};
const expected = (taken: readonly Taken[]): Lists => {
  const folded = fold(taken.map(({ delivered }) => delivered));
  const lists: Record<string, string[]> = {};
  const [from, to] = [0n, BigInt(END_OF_TIME)];
  const texts = (list: readonly { json: string }[]): string[] => list.map(({ json }) => json);
  for (const client of CLIENTS) {
    lists[`${client} conversationsByCreation`] = texts(windowCreated(folded.conversations, client, from, to));
    lists[`${client} conversationsByUpdate`] = texts(windowUpdated(folded.conversations, client, from, to));
    lists[`${client} messagesByCreation`] = texts(windowCreated(folded.messages, client, from, to));
    const users = [...(folded.endUsers.get(client)?.values() ?? [])];
    lists[`${client} endUsers`] = texts(users.sort((a, b) => compareUtf8(a.id, b.id)));
  }
  return lists;
};

/** A hash over a NULL column is NULL. */
const WHOLE_ROW = "toString(tuple(*))";
const rowsOf = (table: string): Promise<string> =>
  warehouse.sql(`SELECT cityHash64(${WHOLE_ROW}) AS row FROM ${table} ORDER BY row`);
const allRows = async (): Promise<string[]> => Promise.all(RECORD_TABLES.map(rowsOf));

const later = (record: ExportRecord) => {
  const dateCreated = record.dateCreated + 3 * HOUR;
  const [was, is] = [record.dateCreated, dateCreated].map((at) => `"date_created":"${formatTimestamp(at)}"`);
  return { ...record, dateCreated, beforeUpload: record.beforeUpload.replace(String(was), String(is)) };
};
const handoffAt = (entry: HandoffEntry, dateCreated: Micros): HandoffEntry => ({
  ...entry,
  dateCreated,
  entry: entry.entry.replace(formatTimestamp(entry.dateCreated), formatTimestamp(dateCreated)),
});

const ofConversations =
  (bug: Bug): Bug =>
  (record) =>
    record.type === "conversation.exported" ? bug(record) : record;
const moved: Bug = (record) => (record.type === "end_user.exported" ? record : later(record));
const lateHandoffs: Bug = (record) => ({
  ...record,
  handoffs: record.handoffs.map((entry) => handoffAt(entry, entry.dateCreated + 5 * HOUR)),
});
const newer: Bug = (record) => ({
  ...record,
  version: { ...record.version, exportedAt: record.version.exportedAt + HOUR },
});
const spoiltEndUsers: Bug = (record) =>
  record.type === "end_user.exported"
    ? {
        ...record,
        columns: ["x", ...record.columns.slice(1)],
        beforeUpload: JSON.stringify({ end_user_id: record.id }),
      }
    : record;
const BUGS: readonly Bug[] = [
  moved,
  (record) => ({
    ...record,
    handoffs: record.handoffs.map((entry) => ({ ...entry, target: `${entry.target}?` })),
  }),
  lateHandoffs,
  newer,
  ofConversations((record) => ({ ...record, tail: `${record.tail.slice(0, -1)} }` })),
  ofConversations((record) => ({ ...record, dateUpdated: record.dateUpdated + HOUR })),
  spoiltEndUsers,
  (record) =>
    record.type === "message.exported" ? { ...record, conversationId: `${record.conversationId}?` } : record,
];
const harmed = (taken: readonly Taken[], bug: Bug): Taken[] =>
  taken.map((one) => ({ ...one, record: bug(one.record) }));

test("rows that ingest wrote are found as they should be, whatever they hold", async () => {
  const events = deliver("right", bySize(100, 2_000));
  await write(events);
  const before = await allRows();
  const { records, rows, events: read } = await correctWith()(EVERYTHING);
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
  const written = harmed(shuffled(random, events), (record) => {
    const bug = random.pick(BUGS);
    return random.chance(0.4) ? bug(record) : record;
  });
  const half = written.length >> 1;
  await write(written.slice(0, half));
  await write(written.slice(half));
  for (const table of ["handoffs", "conversations"]) await warehouse.sql(`OPTIMIZE TABLE ${table}`);
  await warehouse.sql("SYSTEM STOP MERGES");
  const wrong = await allRows();
  expect(await shown()).not.toMatchObject(expected(events));

  const tried = await correctWith()(DRY);
  expect(tried.records.different).toBeGreaterThan(20);
  expect(await allRows()).toEqual(wrong);
  await warehouse.sql("SYSTEM START MERGES");
  // Plans of a few records, as when records are very large.
  const done = await correctWith({ planBytes: 60_000 })(EVERYTHING);
  expect(done.records).toEqual(tried.records);
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
  expect(right).toMatchObject(expected(events));
  const published = await warehouse.sql("SELECT uniqExact(client_id, kind, id) FROM changes WHERE deleted");
  expect(Number(published)).toBeGreaterThan(20);

  const before = await allRows();
  const again = await correctWith()(EVERYTHING);
  expect(again.records.different).toBe(0);
  const { inserted, deleted } = again.rows;
  expect([...Object.values(inserted), ...Object.values(deleted)].every((count) => count === 0)).toBe(true);
  for (const [at, rows] of (await allRows()).entries()) {
    const had = new Set(before[at]?.split("\n"));
    expect(rows.split("\n").filter((row) => !had.has(row))).toEqual([]);
  }
  for (const table of RECORD_TABLES) await warehouse.sql(`OPTIMIZE TABLE ${table} FINAL`);
  expect(await shown()).toEqual(right);
});

test("wrong profiles of end users are put right", async () => {
  const events = deliver("profiles", 30);
  await write(harmed(events, spoiltEndUsers));
  expect(await shown()).not.toMatchObject(expected(events));
  const done = await correctWith()(EVERYTHING);
  expect(done.rows.inserted.end_users).toBeGreaterThan(10);
  expect(await shown()).toMatchObject(expected(events));
});

const isoOf = (instant: Micros): string => `${formatTimestamp(instant).replace(/\+.*$/, "")}Z`;

const typeOfList = (list: string): EventType => {
  if (list === "endUsers") return TYPES.end_user;
  return list.startsWith("message") ? TYPES.message : TYPES.conversation;
};

test.each([
  "upload",
  "event",
  "offsets",
] as const)("a window by %s repairs each record with an event in it, from all its events, and no other record", async (by) => {
  const random = createRandom(41);
  // ClickHouse cannot read all nonstandard times; their events are taken as well.
  const taken = deliver(`window by ${by}`, bySize(60, 1_000), by === "event" ? 0 : 0.3);
  const [early, late] = [now() - HOUR, now()];
  const times = taken.map(({ record }) => record.version.exportedAt).sort((a, b) => a - b);
  const bounds = [times[times.length >> 1] ?? 0, times[(times.length * 5) >> 3] ?? 0] as const;
  const offsets = [10, 30] as const;
  const isIn = new Set(
    taken.filter(({ delivered: { topic, offset }, record: { version } }) => {
      if (by === "upload") return random.chance(0.15);
      if (by === "event") return version.exportedAt >= bounds[0] && version.exportedAt < bounds[1];
      return topic === TOPICS.message && offset >= offsets[0] && offset < offsets[1];
    }),
  );
  const nameOf = ({ type, clientId, id }: ExportRecord): string => `${type} ${clientId} ${id}`;
  const inWindow = new Set([...isIn].map(({ record }) => nameOf(record)));
  expect(inWindow.size).toBeGreaterThan(5);
  const written = shuffled(random, taken).map((one) => {
    const bug = random.pick(BUGS);
    return { one, written: { ...one, record: random.chance(0.9) ? bug(one.record) : one.record } };
  });
  for (const uploadedAt of [early, late])
    await write(
      written
        .filter(({ one }) => (by === "upload" && isIn.has(one)) === (uploadedAt === late))
        .map((each) => each.written),
      uploadedAt,
    );

  const apart = (lists: Lists) =>
    [true, false].map((wanted) =>
      Object.entries(lists).flatMap(([name, records]) => {
        const [client = "", list = ""] = name.split(" ");
        return records
          .filter((text) => {
            const { _id, end_user_id } = JSON.parse(text) as { _id?: string; end_user_id?: string };
            return inWindow.has(`${typeOfList(list)} ${client} ${_id ?? end_user_id}`) === wanted;
          })
          .map((text) => `${name} ${text}`);
      }),
    );
  const [, othersBefore] = apart(await shown());
  const window: BackfillData["window"] =
    by === "offsets"
      ? { by, topic: TOPICS.message, ranges: [{ partition: 0, from: offsets[0], to: offsets[1] }] }
      : by === "event"
        ? { by, from: isoOf(bounds[0]), to: isoOf(bounds[1]) }
        : { by, from: isoOf(late), to: isoOf(late + HOUR) };
  const done = await correctWith()({ ...EVERYTHING, window });
  expect(done.records.examined).toBe(inWindow.size);
  const [windowAfter, othersAfter] = apart(await shown());
  const [windowWanted = []] = apart(expected(taken));
  expect(windowWanted.length).toBeGreaterThan(5);
  expect(windowAfter).toEqual(windowWanted);
  expect(othersAfter).toEqual(othersBefore);
});

const WITHOUT_ENTRY = [
  ["conversation", "conversations", "conversation_id", "date_created"],
  ["message", "messages", "message_id", "date_created"],
  ["end_user", "end_users", "end_user_id", "toDateTime64(0, 6, 'UTC')"],
]
  .map(
    ([kind, table, id, created]) => `SELECT '${kind}', r.client_id, r.id FROM
      (SELECT client_id, ${id} AS id, argMax(${created}, (version, uploaded_at)) AS d, max((version, uploaded_at)).2 AS u
        FROM ${table} GROUP BY client_id, ${id}) AS r
      GLOBAL LEFT JOIN (SELECT client_id, id, date_created, max(stored_at) AS s FROM changes WHERE kind = '${kind}'
        AND NOT deleted GROUP BY client_id, id, date_created) AS e
      ON e.client_id = r.client_id AND e.id = r.id AND e.date_created = r.d WHERE e.s < r.u`,
  )
  .join(" UNION ALL ");

test("entries that are missing in the update index and handoffs that are missing are written again, and nothing is deleted", async () => {
  const events = deliver("missing entries", 60);
  await write(events);
  const right = await shown();
  for (const table of ["conversation_updates", "handoffs"])
    await warehouse.sql(`DELETE FROM ${table} WHERE cityHash64(client_id, conversation_id) % 3 = 0`);
  expect(await shown()).not.toEqual(right);

  const tried = await correctWith()(DRY);
  const done = await correctWith()(EVERYTHING);
  expect(done.records).toEqual(tried.records);
  for (const table of ["conversation_updates", "handoffs"] as const)
    expect(done.rows.inserted[table], table).toBeGreaterThan(5);
  expect(Object.values(done.rows.deleted).every((count) => count === 0)).toBe(true);
  expect(await shown()).toEqual(right);
  expect((await correctWith()(EVERYTHING)).records.different).toBe(0);
});

test("a record that no entry of changes describes gets one, and one that is gone gets none", async () => {
  const events = deliver("untold", 60);
  await write(events);
  const share = (id: string, fifth: number): string => `cityHash64(client_id, ${id}) % 5 = ${fifth}`;
  await warehouse.sql(`DELETE FROM messages WHERE ${share("message_id", 1)}`);
  await warehouse.sql(`DELETE FROM landing WHERE type = 'message.exported' AND ${share("record_id", 1)}`);
  await warehouse.sql(`DELETE FROM changes WHERE kind = 'message' AND ${share("id", 1)}`);
  await warehouse.sql(`DELETE FROM changes WHERE ${share("id", 2)} OR ${share("id", 3)}`);
  // Neither an older entry nor one of a deletion describes a row.
  const publish = (fifth: number, at: string, deleted: boolean): Promise<string> =>
    warehouse.sql(`INSERT INTO changes SELECT client_id, 'message', ${at}, message_id, date_created, ${deleted}
      FROM messages WHERE ${share("message_id", fifth)} SETTINGS log_comment = 'stamped'`);
  await publish(2, "uploaded_at - INTERVAL 1 DAY", false);
  await publish(3, "uploaded_at", true);
  const countOf = async (sql: string): Promise<number> => Number(await warehouse.sql(sql));
  const wanted = await countOf(`SELECT count() FROM (${WITHOUT_ENTRY})`);
  expect(wanted).toBeGreaterThan(30);
  const before = await shown();
  const [rows, entries] = [await allRows(), await rowsOf("changes")];

  const tried = await correctWith()(DRY);
  expect(tried.records.different).toBe(wanted);
  expect([await allRows(), await rowsOf("changes")]).toEqual([rows, entries]);
  const done = await correctWith()(EVERYTHING);
  expect(done).toEqual(tried);
  expect(sum(done.rows.inserted)).toBeGreaterThanOrEqual(wanted);
  expect(await warehouse.sql(WITHOUT_ENTRY)).toBe("");
  expect(await shown()).toEqual(before);
  const ofGone = `SELECT count() FROM changes WHERE kind = 'message' AND ${share("id", 1)}`;
  expect(await countOf(ofGone)).toBe(0);
  const published = await rowsOf("changes");
  expect((await correctWith()(EVERYTHING)).records.different).toBe(0);
  expect(await rowsOf("changes")).toBe(published);
});

test("rows that may not be deleted stay and are counted, and right ones are added", async () => {
  await write(harmed(deliver("old", 60), moved));
  const countOf = async (): Promise<number> =>
    Number(await warehouse.sql("SELECT count() FROM conversations FINAL"));
  const stored = await countOf();
  const done = await correctWith({ coverage: null })(EVERYTHING);
  expect(sum(done.rows.deleted)).toBe(0);
  expect(done.rows.undeletable.conversations).toBeGreaterThan(20);
  expect(await countOf()).toBe(stored + done.rows.inserted.conversations);
  expect((await correctWith({ coverage: null })(EVERYTHING)).records.different).toBe(0);
});

const twice = (salt: string, conversations: number): (readonly [Taken, Taken])[] => {
  const exportsOf = new Map<string, Taken[]>();
  for (const event of deliver(salt, conversations)) {
    const { record } = event;
    if (record.type !== "conversation.exported") continue;
    const name = `${record.clientId} ${record.id}`;
    const known = exportsOf.get(name) ?? [];
    const isNewer = known.every((one) => one.record.version.exportedAt < record.version.exportedAt);
    if (isNewer) exportsOf.set(name, [...known, event]);
  }
  return [...exportsOf.values()].flatMap(([first, second]) =>
    first === undefined || second === undefined ? [] : [[first, second] as const],
  );
};

test("newer exports stay, whichever steps of a run they come between", async () => {
  const pairs = twice("any instant", bySize(150, 600));
  const firsts = pairs.map(([first]) => first);
  await write(harmed(firsts, (record) => newer(lateHandoffs(record))));
  const waiting = pairs.map(([, second]) => second);
  const came: string[] = [];
  const racing = <T extends object>(target: T): T => {
    const come = async (at: string): Promise<void> => {
      const next = waiting.splice(0, 1);
      came.push(at);
      await write(next);
    };
    return Object.fromEntries(
      Object.entries(target).map(([name, call]: [string, (...args: unknown[]) => unknown]) => [
        name,
        name === "landed"
          ? async function* (...args: unknown[]) {
              await come(`before ${name}`);
              for await (const events of call(...args) as AsyncIterable<unknown>) {
                yield events;
                await come(`in ${name}`);
              }
            }
          : async (...args: unknown[]) => {
              await come(`before ${name}`);
              const result = await call(...args);
              await come(`behind ${name}`);
              return result;
            },
      ]),
    ) as T;
  };
  const done = await correctWith({ runs: racing(runs), wrong: racing(wrong) })(EVERYTHING);
  expect(done.rows.deleted.conversations).toBeGreaterThan(20);
  for (const at of ["behind note", "before erase", "behind erase", "before end"]) expect(came).toContain(at);
  await write(waiting);
  const versions = await warehouse.sql(
    `SELECT client_id, conversation_id, toUnixTimestamp64Micro(exported_at) FROM conversations FINAL`,
  );
  expect(versions.split("\n").toSorted()).toEqual(
    pairs
      .map(([, { record }]) => [record.clientId, record.id, record.version.exportedAt].join("\t"))
      .toSorted(),
  );
  await correctWith()(EVERYTHING);
  expect(await shown()).toMatchObject(expected(pairs.flat()));
});

test("an export of a topic that was deleted stays when an earlier one took its place on the bus", async () => {
  const pairs = twice("created anew", 60);
  const former = pairs.map(([{ delivered, record }, second]): Taken => {
    const { partition, offset } = delivered;
    const version = { ...second.record.version, partition, offset: record.version.offset };
    return {
      ...second,
      delivered: { ...second.delivered, partition, offset },
      record: { ...second.record, version },
    };
  });
  const arrivedAt = Date.now();
  await write(former, now(), arrivedAt - 60_000);
  await write(
    pairs.map(([first]) => first),
    now(),
    arrivedAt,
  );
  await warehouse.sql("OPTIMIZE TABLE landing FINAL");
  const before = await shown();
  const done = await correctWith()(EVERYTHING);
  expect(await shown()).toEqual(before);
  expect(done.records).toEqual({ examined: pairs.length, different: 0 });
});

test("readers never miss a record while a wrong row of it goes", async () => {
  const events = deliver("moved", bySize(60, 1_000)).filter(({ type }) => type === "conversation.exported");
  await write(harmed(events, moved));
  const records = "SELECT uniqExact(client_id, conversation_id) FROM conversations";
  const wanted = await warehouse.sql(records);
  let isDone = false;
  const counts = new Set<string>();
  const watch = async (): Promise<void> => {
    while (!isDone) counts.add(await warehouse.sql(records));
  };
  const watching = watch();
  const done = await correctWith()(EVERYTHING).finally(() => {
    isDone = true;
  });
  await watching;
  expect(done.rows.deleted.conversations).toBeGreaterThan(30);
  expect([...counts]).toEqual([wanted]);
});

const writeLateHandoffs = async (salt: string, conversations = 30): Promise<Lists> => {
  const events = deliver(salt, conversations).filter(({ type }) => type === "conversation.exported");
  await write(harmed(events, lateHandoffs));
  return expected(events);
};
const expectNothingLeft = async (): Promise<void> => {
  const waiting = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done";
  expect(await warehouse.sql(waiting)).toBe("0");
  expect(await warehouse.sql("SELECT count() FROM job_keys")).toBe("0");
  expect(await warehouse.sql("SELECT count() FROM backfill_rows")).toBe("0");
};

test("a right handoff that a merge drops below a wrong one of a later date is written again", async () => {
  const right = await writeLateHandoffs("trap", bySize(80, 1_000));
  const tried = await correctWith()(DRY);
  const done = await correctWith({}, async () => {
    await warehouse.sql("OPTIMIZE TABLE handoffs FINAL");
  })(EVERYTHING);
  expect(done.rows.deleted.handoffs).toBeGreaterThan(30);
  expect(done.rows.inserted.handoffs).toBeGreaterThan(tried.rows.inserted.handoffs);
  expect(await shown()).toMatchObject(right);
  await expectNothingLeft();
});

test("a wrong row is not deleted on account of a right one that is gone meanwhile", async () => {
  const taken = messagesOf("gone", 30);
  await write(harmed(taken, moved));
  const wanted = await warehouse.sql("SELECT uniqExact(client_id, message_id) FROM messages");
  const deletedAt: string[] = [];
  const watched: WrongRows = {
    ...wrong,
    erase: async (...args) => {
      await wrong.erase(...args);
      deletedAt.push(await warehouse.sql("SELECT uniqExact(client_id, message_id) FROM messages"));
    },
  };
  const dates = taken.map(({ record: { dateCreated } }) => dateCreated).join();
  const removed = "toUnixTimestamp64Micro(date_created) IN";
  await correctWith({ wrong: watched }, async () => {
    await warehouse.sql(
      `ALTER TABLE messages DELETE WHERE ${removed} (${dates}) SETTINGS mutations_sync = 2`,
    );
  })(EVERYTHING);
  expect(deletedAt).toEqual([wanted]);
  const list = "acme messagesByCreation";
  expect(await shown()).toMatchObject({ [list]: expected(taken)[list] });
});

// Merges are held on one server.
test.skipIf(SHARDS > 1)(
  "wrong rows are deleted when a deletion of someone else has ended, and not before",
  async () => {
    const right = await writeLateHandoffs("other");
    const mutations = (condition: string): Promise<string> =>
      warehouse.sql(
        `SELECT count() FROM system.mutations WHERE database = currentDatabase() AND ${condition}`,
      );
    const before = await mutations("table = 'handoffs'");
    await warehouse.sql("SYSTEM STOP MERGES conversations");
    const correcting = correctWith({}, async () => {
      await warehouse.sql("ALTER TABLE conversations DELETE WHERE conversation_id = 'none'");
    })(EVERYTHING);
    await until(
      "the other deletion waits",
      60_000,
      async () => (await mutations("NOT is_done AND table = 'conversations'")) === "1",
    );
    // Longer than the job needs when it does not wait.
    await expect(Promise.race([correcting, sleep(3_000, "waits")])).resolves.toBe("waits");
    expect(await mutations("NOT is_done")).toBe("1");
    expect(await mutations("table = 'handoffs'")).toBe(before);
    await warehouse.sql("SYSTEM START MERGES conversations");
    await correcting;
    expect(await mutations("table = 'handoffs'")).not.toBe(before);
    expect(await shown()).toMatchObject(right);
  },
);

test("nothing is deleted when the right rows cannot be written", async () => {
  const right = await writeLateHandoffs("late");
  const before = await allRows();
  // ClickHouse refuses it.
  const late: RunUpload = (work) => work({ stamp: 0, generation: 0 });
  await expect(correctWith({ runUpload: late })(EVERYTHING)).rejects.toMatchObject({ retryable: true });
  expect(await allRows()).toEqual(before);
  await correctWith()(EVERYTHING);
  expect(await shown()).toMatchObject(right);
  await expectNothingLeft();
});

test("an attempt that dies after its deletion is continued, and its deletions are published", async () => {
  const right = await writeLateHandoffs("dead");
  const backfill = backfillWith({});
  const dying = backfillWith({
    wrong: {
      ...wrong,
      erase: async (...args) => {
        await wrong.erase(...args);
        throw new Error("died");
      },
    },
  });
  const context = contextOf(EVERYTHING);
  const parts = await backfill.split(context);
  for (const part of parts) await backfill.runPart(context, part, false);
  const [part] = parts;
  if (part === undefined) throw new Error("no part");
  await expect(dying.finish(context, part, false)).rejects.toThrow("died");
  await backfill.finish(context, part, false);
  await backfill.forget(context);
  expect(await shown()).toMatchObject(right);
  expect(Number(await warehouse.sql("SELECT count() FROM changes WHERE deleted"))).toBeGreaterThan(0);
  await expectNothingLeft();
  await expect(backfill.runPart(context, part, false)).rejects.toMatchObject({ code: "backfill_rows_gone" });
});

test("rows that a writer is just writing are not missing", async () => {
  const taken = messagesOf("writing", 20);
  const uploadedAt = now();
  await write(taken, uploadedAt);
  await warehouse.sql("TRUNCATE TABLE messages");
  const coverage = { since: 0, asOf: uploadedAt };
  const dry = await correctWith({ coverage, stableUpTo: uploadedAt })(DRY);
  expect(dry.records.different).toBe(0);
  const missing = await correctWith({ coverage, stableUpTo: uploadedAt + 1 })(DRY);
  expect(missing.records.different).toBeGreaterThan(20);
});

// The estimate is of one server.
test.skipIf(SHARDS > 1)("each part reads its own share of landing and of the copied rows", async () => {
  const events = deliver("shares", bySize(1_200, 20_000));
  await write(events);
  await warehouse.sql("OPTIMIZE TABLE landing FINAL");
  const [whole] = (await backfillWith({}).split(contextOf(EVERYTHING))).slice(0, 1);
  if (whole === undefined) throw new Error("no part");
  const estimate = async (from: bigint, to: bigint): Promise<number> => {
    const hash = "cityHash64(client_id, record_id)";
    const plan = await warehouse.sql(
      `EXPLAIN ESTIMATE SELECT payload FROM landing WHERE ${hash} >= ${from} AND ${hash} <= ${to}`,
    );
    return Number(plan.split("\t")[3]);
  };
  const all = 2n ** 64n;
  expect(await estimate(0n, all - 1n)).toBeGreaterThanOrEqual(events.length * 0.8);
  expect(await estimate(all / 2n, all / 2n + all / 10n)).toBeLessThan(events.length * 0.1 + 3 * 512);
});

test("a record that the warehouse refuses stays as it stands, and the others are put right", async () => {
  const taken = deliver("refused", 30).filter(({ type }) => type !== "end_user.exported");
  const bug: Bug = (record) => (record.type === "conversation.exported" ? lateHandoffs : moved)(record);
  await write(harmed(taken, bug));
  const withHandoff = taken.find(
    ({ record }) => record.type === "conversation.exported" && record.handoffs.length > 0,
  );
  const message = taken.find(({ record }) => record.type === "message.exported");
  if (withHandoff === undefined || message === undefined) throw new Error("a sample without handoffs");
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
  const done = await correctWith()(EVERYTHING);
  expect(done.events.rejected).toBe(2);
  expect(done.problems.map(({ reason }) => reason)).toEqual(["refused_by_warehouse", "refused_by_warehouse"]);
  expect(await rowsOfRefused()).toEqual(before);
  await expectNothingLeft();
  for (const [table] of refused) await warehouse.sql(`ALTER TABLE ${table} DROP CONSTRAINT not_this`);
  const rest = await correctWith()(EVERYTHING);
  expect(rest.records.different).toBe(2);
  expect((await correctWith()(EVERYTHING)).records.different).toBe(0);
});

test("rows of an event that is rejected now are removed, and what the record's other events say is shown", async () => {
  const taken = deliver("rejected", 40);
  const nameOf = ({ type, clientId, id }: ExportRecord): string => `${type} ${clientId} ${id}`;
  const latest = new Map<string, Taken>();
  for (const one of taken) {
    const known = latest.get(nameOf(one.record));
    if (known === undefined || known.record.version.exportedAt <= one.record.version.exportedAt)
      latest.set(nameOf(one.record), one);
  }
  // Every other record loses its latest export, which for some is the only one.
  const bad = new Set([...latest.values()].filter((_, at) => at % 2 === 0));
  await write(
    taken.map((one) => {
      if (!bad.has(one)) return one;
      const { delivered } = one;
      const event = { ...delivered.event, value: Buffer.from("no longer accepted") };
      return { ...one, delivered: { ...delivered, event } };
    }),
  );
  const before = await shown();
  const dry = await correctWith()(DRY);
  expect(await shown()).toEqual(before);
  const done = await correctWith()(EVERYTHING);
  expect(done.events.rejected).toBe(bad.size);
  expect(done.rows.deleted.conversations).toBeGreaterThan(10);
  expect(dry.rows.deleted).toEqual(done.rows.deleted);
  const wanted = expected(taken.filter((one) => !bad.has(one)));
  expect(wanted).not.toEqual(expected(taken));
  expect(await shown()).toMatchObject(wanted);
});

test("suppressed exports are neither written nor deleted", async () => {
  await write(messagesOf("suppressed", 30));
  await warehouse.sql("ALTER TABLE messages DELETE WHERE client_id = 'acme' SETTINGS mutations_sync = 2");
  const before = await rowsOf("messages");
  const suppresses = (record: ExportRecord): boolean => record.clientId === "acme";
  const tried: ExportRecord[] = [];
  const gate: Gate = {
    ...gateThat(suppresses),
    suppresses: async (records) => (tried.push(...records), records.map(suppresses)),
  };
  const dry = await correctWith({ gate })(DRY);
  expect(dry.events.suppressed).toBeGreaterThan(10);
  expect(tried).toEqual([]);
  const done = await correctWith({ gate })(EVERYTHING);
  expect(done.events.suppressed).toBe(dry.events.suppressed);
  expect(tried.length).toBeGreaterThan(10);
  expect(done.records.different).toBe(0);
  expect(await rowsOf("messages")).toBe(before);
  expect((await correctWith()(EVERYTHING)).rows.inserted.messages).toBeGreaterThan(10);
});

test("a selection takes the events of a client, a range or a time of export", async () => {
  const taken = deliver("selection", 40);
  await write(taken);
  const count = (selection: Partial<LandingSelection>): Promise<number> =>
    runs.count({ ...ALL_EVENTS, ...selection }, signal);
  const matching = (test: (one: Taken) => boolean): number =>
    new Set(taken.filter(test).map(({ delivered: { topic, offset } }) => `${topic} ${offset}`)).size;
  expect(await count({})).toBe(taken.length);
  expect(await count({ clientId: "acme" })).toBe(matching(({ record }) => record.clientId === "acme"));
  const range = { by: "offsets", topic: "messages", partition: 0, from: 5, to: 25 } as const;
  expect(await count({ range })).toBe(20);
  const times = taken.map(({ record }) => record.version.exportedAt).sort((a, b) => a - b);
  const exported = { from: times[20] ?? 0, to: times[60] ?? 0 };
  const inside = matching(
    ({ record: { version } }) => version.exportedAt >= exported.from && version.exportedAt < exported.to,
  );
  const found = await count({ exported });
  // ClickHouse cannot read events with some numbers, so they count as inside.
  expect(found).toBeGreaterThanOrEqual(inside);
  expect(found).toBeLessThan(inside * 2);
});

test("a job keeps what it has read while another begins, and reads the coverage once", async () => {
  await write(deliver("side by side", 60));
  let coverages = 0;
  const isOver = async (job: string): Promise<boolean> => job !== "job";
  const backfill = backfillWith({ isOver, onCoverage: () => (coverages += 1) });
  const begun = "SELECT uniqExact(run_id) FROM backfill_rows";
  const parts = await backfill.split(contextOf(DRY));
  expect(parts.length).toBeGreaterThan(2);
  await backfill.split({ ...contextOf(DRY), id: "dead" });
  expect(await warehouse.sql(begun)).toBe("2");
  await backfill.split({ ...contextOf(DRY), id: "other" });
  expect(await warehouse.sql(begun)).toBe("2");
  coverages = 0;
  for (const part of parts) await backfill.runPart(contextOf(DRY), part, true);
  expect(coverages).toBe(0);
});

test("two jobs that delete at once, as with two Redis, end as one", async () => {
  const events = deliver("two at once", bySize(60, 1_000));
  const random = createRandom(44);
  await write(
    harmed(events, (record) => {
      const bug = random.pick(BUGS);
      return random.chance(0.5) ? bug(record) : record;
    }),
  );
  const together = (): ((at: string) => Promise<void>) => {
    const waiting = new Map<string, () => void>();
    return async (at) => {
      const other = waiting.get(at);
      if (other !== undefined) return other();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(at, resolve);
      await promise;
    };
  };
  const meet = together();
  const overlaps: string[] = [];
  const jobOf = (name: string) => {
    const own = createWrongRows({ session: warehouse.session("jobs"), runUpload: uploadNow, holder: name });
    let erases = 0;
    const backfill = backfillWith({
      wrong: {
        ...own,
        // Its first deletion starts when both have stored what they delete.
        erase: async (...args) => {
          erases += 1;
          if (erases === 1) await meet("erase");
          overlaps.push(name);
          await own.erase(...args);
          overlaps.push(name);
        },
      },
      isOver: async () => false,
      alive: ["one", "two"],
    });
    const context = { ...contextOf(EVERYTHING), id: name };
    const finish = async (part: Parameters<LandingBackfill["finish"]>[1]): Promise<void> => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          await backfill.finish(context, part, false);
          return await backfill.forget(context);
        } catch (error) {
          if (attempt > 5 || !(error instanceof ServiceError && error.retryable)) throw error;
        }
      }
    };
    return { backfill, context, finish };
  };
  const jobs = [jobOf("one"), jobOf("two")];
  await Promise.all(
    jobs.map(async ({ backfill, context, finish }) => {
      const parts = await backfill.split(context);
      await meet("split");
      for (const part of parts) await backfill.runPart(context, part, false);
      const [first] = parts;
      if (first === undefined) throw new Error("no part");
      await meet("finish");
      await finish(first);
    }),
  );
  expect(new Set(overlaps.slice(0, 2))).toEqual(new Set(["one", "two"]));
  expect(await shown()).toMatchObject(expected(events));
  await expectNothingLeft();
  expect((await correctWith()(EVERYTHING)).records.different).toBe(0);
});

test("what a job left that may be retried is removed a day after it was written", async () => {
  const stored = async (): Promise<string> =>
    warehouse.sql("SELECT DISTINCT run_id FROM backfill_rows ORDER BY run_id");
  const add = (run: string, hours: number): Promise<string> =>
    warehouse.sql(`INSERT INTO backfill_rows (run_id, record, kind, added_at)
      VALUES ('${run}', 1, 'begun', now() - INTERVAL ${hours} HOUR)`);
  await add("backfill old/1", 25);
  await add("backfill used/1", 25);
  await add("backfill used/1", 23);
  await backfillWith({ isOver: async () => false }).sweep();
  expect(await stored()).toBe("backfill used/1");
});

test("keys are not removed by an attempt whose job goes on elsewhere", async () => {
  const name = await wrong.begin("backfill job/1", signal);
  await wrong.note(name, [{ clientId: "acme", id: "1", row: ROW }], signal);
  const stopped = new AbortController();
  const paused = createWrongRows({
    session: warehouse.session("jobs"),
    runUpload: async (...given) => {
      await uploadNow(...given);
      stopped.abort();
    },
    holder: "here",
  });
  await expect(paused.end(name, stopped.signal)).rejects.toThrow("aborted");
  await wrong.erase(name, signal);
  await wrong.end(name, signal);
});

test("what a dead process noted is swept, and it deletes nothing by it afterwards", async () => {
  const [event] = messagesOf("swept", 1);
  if (event === undefined) throw new Error("no message");
  const { record } = event;
  await write([event]);
  const [version] = (await warehouse.sql("SELECT toString(version) FROM messages")).split("\n");
  const row = { ...ROW, date: record.dateCreated, version: BigInt(version ?? 0) };
  const there = createWrongRows({
    session: warehouse.session("jobs"),
    runUpload: uploadNow,
    holder: "there",
  });
  const name = await there.begin("backfill job/1", signal);
  await there.note(name, [{ clientId: record.clientId, id: record.id, row }], signal);
  // The job runs in another Redis.
  await backfillWith({ isOver: async () => false, alive: ["here", "there"] }).sweep();
  const published = "SELECT countIf(deleted) FROM changes";
  expect(await warehouse.sql(published)).toBe("0");
  await warehouse.sql(
    `INSERT INTO job_keys (run_id, kind, id) SELECT '${name}', 'begun', toString(number) FROM numbers(64)`,
  );
  await expect(there.erase(name, signal)).rejects.toMatchObject({ code: "keys_lost", retryable: true });
  expect(await warehouse.sql("SELECT count() FROM messages")).toBe("1");
  await backfillWith({ isOver: async () => false }).sweep();
  expect(await warehouse.sql(published)).toBe("1");
  await expect(there.erase(name, signal)).rejects.toMatchObject({ code: "keys_lost" });
  expect(await warehouse.sql("SELECT (SELECT count() FROM messages), (SELECT count() FROM job_keys)")).toBe(
    "1\t0",
  );
});

test("records of a window that landing does not hold any more are counted", async () => {
  const taken = messagesOf("uncovered", 20);
  const [early, late] = [now() - HOUR, now()];
  await write(taken.slice(0, 20), early);
  await warehouse.sql("TRUNCATE TABLE landing");
  await write(taken.slice(20), late);
  const backfill = backfillWith({});
  const of = (window: BackfillData["window"]) =>
    backfill.uncovered(contextOf({ ...EVERYTHING, window }), late);
  const names = (list: readonly Taken[]): number =>
    new Set(list.map(({ record }) => `${record.clientId} ${record.id}`)).size;
  const lost = { before: late, records: names(taken.slice(0, 20)) };
  expect(await of({ by: "upload", from: isoOf(early), to: isoOf(late + HOUR) })).toEqual(lost);
  expect(await of({ by: "upload", from: isoOf(early + 1_000), to: isoOf(late + HOUR) })).toBeNull();
  expect(await of({ by: "event", from: isoOf(0), to: isoOf(END_OF_TIME) })).toEqual(lost);
  const ranges = [{ partition: 0, from: 0, to: 1_000_000 }];
  expect(await of({ by: "offsets", topic: "messages", ranges })).toEqual(lost);
  expect(await of(null)).toBeNull();
  const { uncovered } = backfillWith({ coverage: null });
  expect(
    await uncovered(
      contextOf({ ...EVERYTHING, window: { by: "event", from: isoOf(0), to: isoOf(late) } }),
      undefined,
    ),
  ).not.toBeNull();
});

test("the landing store covers what was written", async () => {
  const uploadedAt = now();
  await write(deliver("coverage", 1).slice(0, 1), uploadedAt);
  const landing = createLandingStore({ session: warehouse.session("jobs") });
  expect((await landing.coverage())?.since).toBe(uploadedAt);
});
