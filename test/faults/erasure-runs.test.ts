import { once } from "node:events";
import {
  type DataSubject,
  emailForm,
  type ExportRecord,
  formatTimestamp,
  type Micros,
  type WriteTicket,
} from "@conversation-export/domain";
import {
  createApproval,
  createErasure,
  createLatestJudgement,
  type ErasureDeps,
} from "@conversation-export/jobs";
import {
  createExclusive,
  createRedis,
  type ErasureData,
  type ErasureResult,
  type JobContext,
  type Redis,
} from "@conversation-export/queue";
import { createLogger, createMetrics, ServiceError } from "@conversation-export/runtime";
import {
  createSubjectHash,
  createSuppressionGate,
  type SuppressionGate,
} from "@conversation-export/suppression";
import {
  createBatch,
  createDeletion,
  createErasureStore,
  createReader,
  createRequestCompletion,
  createRequestStore,
  createStableStore,
  createCoordination,
  createSuppressionStore,
  createWriter,
  emailFormSql,
  type ErasureStore,
  isStaleTicket,
  migrate,
  type RequestCompletion,
  type RequestStore,
  type RunUpload,
  type Session,
  type Coordination,
  subjectsOfRequest,
  type SuppressionStore,
  type Topology,
  type Writer,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findInActiveParts } from "../compare/part-bytes.ts";
import { bySize } from "../system/size.ts";
import { until } from "../system/until.ts";
import { rememberShards, SHARDS, topologyOf } from "../system/shards.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { conversation, DAY, DAY_0, endUser, message, SECOND } from "../warehouse/records.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { createSessions } from "../system/warehouse-sessions.ts";
import { ticketNow, uploadNow } from "../warehouse/upload-now.ts";
import { readPage } from "../warehouse/walk.ts";

const SECRET = "a secret of the tests of erasure";
const KILLED_AT = bySize([14, 26], [...Array.from({ length: 44 }, (_, at) => at + 1), 99]);
const PAUSED_AT = bySize([7, 23, 36], [...Array.from({ length: 44 }, (_, at) => at + 1), 99]);
const PEOPLE = bySize(8, 100);
const TABLES = [
  "conversations",
  "conversation_updates",
  "handoffs",
  "messages",
  "end_users",
  "record_dates",
  "landing",
];
/** After every stamp, µs. */
const LATER = Date.UTC(2100) * 1000;
const KILLED = new ServiceError("killed", "killed", { retryable: true });
const log = createLogger({ service: "test", level: "silent" });

/** A run at the same time may have later stamps required meanwhile. */
const upload: RunUpload = (work) =>
  uploadNow(work).catch((error: unknown) => {
    if (!isStaleTicket(error)) throw error;
    return uploadNow(work);
  });

let stack: TestStack;
let topology: Topology;
let redis: Redis;
let jobsSession: Session;
let writer: Writer;
let coordination: Coordination;
let store: ErasureStore;
let suppressions: SuppressionStore;
let completion: RequestCompletion;
let intake: RequestStore;
let offset = 0;
const sessions = createSessions();

const sql = (statement: string) => runSql(stack.clickhouse.url("migrator"), statement);

beforeAll(async () => {
  stack = await startTestStack({ servers: ["clickhouse", "redis"], shards: SHARDS });
  rememberShards(stack);
  topology = topologyOf(stack);
  await migrate({ url: stack.clickhouse.url("migrator"), topology });
  jobsSession = sessions.open(stack.clickhouse.url("jobs"), topology);
  const jobs = { session: jobsSession };
  redis = createRedis({ url: stack.redis.url, log });
  await redis.start();
  coordination = createCoordination(jobs);
  writer = createWriter({ session: sessions.open(stack.clickhouse.url("writer")) });
  store = createErasureStore({ ...jobs, runUpload: upload });
  suppressions = createSuppressionStore(jobs);
  completion = createRequestCompletion({ ...jobs, now: Date.now });
  intake = createRequestStore({
    session: sessions.open(stack.clickhouse.url("intake")),
    now: Date.now,
    idSecret: "a secret of the tests",
  });
});

afterAll(async () => {
  await sessions.close();
  await redis?.stop();
  await stack?.stop();
});

const write = async (records: readonly ExportRecord[], tables: readonly string[] = TABLES): Promise<void> => {
  for (const type of new Set(records.map((record) => record.type))) {
    const batch = createBatch(type, 1024, { landingDays: 14 });
    for (const record of records.filter((one) => one.type === type)) {
      offset += 1;
      const value = Buffer.from(JSON.stringify(record));
      const topic = type.replace(".exported", "s");
      const timestamp = Date.now();
      batch.add(record, { topic, partition: 0, offset, key: null, headers: {}, value, timestamp });
    }
    batch.fillUpload(Date.now() * 1000);
    for (const insert of batch.inserts(0, batch.records())) {
      if (tables.includes(insert.table)) await writer.insert(insert, ticketNow());
    }
  }
};

const erasureDeps = (rule = { percent: 1, records: 1_000 }): ErasureDeps => ({
  requests: completion,
  store,
  approval: createApproval({ requests: completion, store, rule, log }),
  suppressions,
  judgement: createLatestJudgement({
    coordination,
    stable: createStableStore({ session: jobsSession }),
    patienceMs: 1,
    now: Date.now,
    log,
  }),
  hash: createSubjectHash(SECRET),
  // Two concurrent runs, as when Redis has lost the lock.
  exclusive: { run: (_, signal, work) => work(signal), unlessTaken: (_, signal, work) => work(signal) },
});

const run = (
  deps: ErasureDeps = erasureDeps(),
  id = "sweep",
  again?: ErasureData["again"],
  of: Pick<ErasureData, "clientId" | "requestId"> = { clientId: null, requestId: null },
): Promise<ErasureResult> => {
  const context: JobContext<ErasureData> = {
    id,
    data: { ...of, ...(again !== undefined && { again }) },
    attempt: 1,
    signal: new AbortController().signal,
    log,
    state: undefined,
    save: () => Promise.resolve(),
    progress: () => Promise.resolve(),
  };
  return createErasure(deps).run(context);
};

const request = async (client: string, subject: Partial<DataSubject>): Promise<string> => {
  const { requestId } = await intake.open(client, { email: null, identifiers: [], ...subject });
  return requestId;
};

const chatter = (...values: string[]): Pick<DataSubject, "identifiers"> => ({
  identifiers: values.map((value) => ({ type: "chatter_id", value })),
});

const keysLeft = () => sql("SELECT count() FROM erasure_keys");

/** All stored rows of a client, masked ones too. */
const rowsOf = async (client: string): Promise<Record<string, string[]>> => {
  const rows: Record<string, string[]> = {};
  for (const table of TABLES) {
    const text = await sql(`SELECT * FROM ${table} WHERE client_id = '${client}' ORDER BY ALL
      SETTINGS apply_deleted_mask = 0 FORMAT JSONCompactEachRow`);
    rows[table] = text.split("\n").filter((line) => line !== "");
  }
  return rows;
};

const without = (rows: Record<string, string[]>, mark: string): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(rows).map(([table, list]) => [table, list.filter((line) => !line.includes(mark))]),
  );

/** One person in every table, by every way that leads to a record; all texts contain `mark`. */
const person = (client: string, mark: string): { records: ExportRecord[]; subject: DataSubject } => {
  const at = (time: number) => ({ client, time: DAY_0 + time, offset: (offset += 1) });
  const c = (name: string) => `${mark}-${name}`;
  const handoff = {
    id: c("handoff"),
    handoff_id: null,
    date_created: "2026-10-04T00:00:00Z",
    reasoning: mark,
  };
  return {
    subject: { email: `${mark}@example.com`, identifiers: [{ type: "chatter_id", value: c("chatter") }] },
    records: [
      endUser(at(1), c("user"), { profile: { email: ` ${mark.toUpperCase()}@example.com ` } }),
      endUser(at(2), c("user"), { profile: { email: `${c("new")}@example.com` } }),
      // By the end user, by the chatter, and by an older version only; under two dates.
      conversation(at(1), c("by-user"), DAY_0, DAY_0, { end_user_id: c("user"), handoffs: [handoff] }),
      conversation(at(1), c("by-chatter"), DAY_0, DAY_0, { chatter_id: c("chatter"), inquiry_summary: mark }),
      conversation(at(2), c("by-chatter"), DAY_0 + DAY, DAY_0 + DAY, { inquiry_summary: mark }),
      conversation(at(3), c("by-chatter"), DAY_0 + 40 * DAY, DAY_0 + 40 * DAY, { handoffs: [handoff] }),
      // By its conversation, also a former one; by the chatter.
      message(at(1), c("of-user"), DAY_0, c("by-user"), { message_data: { _type: "text", body: mark } }),
      message(at(1), c("has-left"), DAY_0, c("by-chatter")),
      message(at(2), c("has-left"), DAY_0 + DAY, "kept-conversation"),
      message(at(1), c("said"), DAY_0 + 40 * DAY, "kept-conversation", { chatter_id: c("chatter") }),
    ],
  };
};

const neighbour = (client: string): ExportRecord[] => {
  const at = { client, time: DAY_0 };
  return [
    endUser(at, "kept-user", { profile: { email: "kept@example.com" } }),
    conversation(at, "kept-conversation", DAY_0, DAY_0, {
      end_user_id: "kept-user",
      chatter_id: "kept-chatter",
    }),
    message(at, "kept-message", DAY_0, "kept-conversation", { chatter_id: "kept-chatter" }),
  ];
};

/** Records that only rows that are not live lead to. */
const traces = (client: string, mark: string): { landed: ExportRecord[]; stored: ExportRecord[] } => {
  const at = (time: number) => ({ client, time: DAY_0 + time, offset: (offset += 1) });
  const c = (name: string) => `${mark}-${name}`;
  const chatter = { chatter_id: c("chatter") };
  return {
    landed: [
      message(at(1), c("from"), DAY_0, "kept-conversation", { sender: c("chatter"), recipient: "bot" }),
    ],
    stored: [
      // By masked rows only.
      conversation(at(1), c("masked"), DAY_0, DAY_0, chatter),
      conversation(at(2), c("masked"), DAY_0 + DAY, DAY_0 + DAY, { inquiry_summary: mark }),
      message(at(1), c("masked-message"), DAY_0, "kept-conversation", chatter),
      message(at(2), c("masked-message"), DAY_0 + DAY, "kept-conversation"),
      message(at(1), c("to"), DAY_0, "kept-conversation", { sender: "bot", recipient: c("chatter") }),
      // By an address with blanks other than spaces.
      endUser(at(1), c("spaced"), { profile: { email: `\u00a0\t${mark}@EXAMPLE.com\u2003` } }),
    ],
  };
};

it("erases a person from every table, by any version, and nothing of others or of later", async () => {
  const { records, subject } = person("acme", "alba");
  const { landed, stored } = traces("acme", "alba");
  await write([...records, ...landed, ...neighbour("acme"), ...person("globex", "alba").records]);
  await write(
    stored,
    TABLES.filter((table) => table !== "landing"),
  );
  const deletion = createDeletion({ session: sessions.open(stack.clickhouse.url("jobs"), topology) });
  const mask = (table: string, condition: string): Promise<unknown> =>
    sql(`DELETE FROM ${table} WHERE client_id = 'acme' AND ${condition} SETTINGS lightweight_deletes_sync = 2,
      lightweight_mutation_projection_mode = 'rebuild'`);
  await deletion.mask({ table: "messages", condition: "message_id = 'alba-said' AND client_id = 'acme'" });
  await mask("conversations", "conversation_id = 'alba-by-user'");
  await mask("conversations", "conversation_id = 'alba-masked' AND chatter_id != ''");
  await mask(
    "conversation_updates",
    "conversation_id = 'alba-masked' AND date_updated = toDate('2026-10-04')",
  );
  await mask("messages", "message_id = 'alba-masked-message' AND chatter_id != ''");
  const later = Date.now() * 1000 + DAY;
  const at = { client: "later", time: DAY_0 };
  await write([
    conversation(at, "old", DAY_0, DAY_0, { end_user_id: "bo", inquiry_summary: "an old summary" }),
    conversation(at, "new", later, later, { end_user_id: "bo" }),
    message(at, "new-message", later, "old"),
    endUser(at, "bo", { profile: { first_name: "an old summary" } }),
  ]);
  const [before, ofOther, ofLater] = [await rowsOf("acme"), await rowsOf("globex"), await rowsOf("later")];
  expect(before["messages"]?.join()).toContain("alba-masked-message");
  expect(before["record_dates"]?.join()).toContain("alba-masked-message");
  await sql(`INSERT INTO job_keys (run_id, kind, client_id, id) VALUES ('other', 'conversation.exported', 'acme',
    'alba-by-user'), ('other', 'end_user', 'acme', 'alba-user'), ('other', 'message', 'acme', 'kept-message')`);
  await sql(`INSERT INTO erasure_keys (client_id, phase, kind, id, request_id) VALUES ('acme', 'deleting',
    'conversation record', 'alba-by-user', 'expired/1'), ('acme', 'deleting', 'message record', 'kept-message', 'expired/1')`);
  const id = await request("acme", subject);
  await request("later", { identifiers: [{ type: "end_user_id", value: "bo" }] });
  const result = await run();
  expect(result).toMatchObject({ requests: 2, found: { conversations: 4, messages: 6, end_users: 3 } });
  const published =
    "SELECT kind, uniqExact(client_id, id) FROM changes WHERE deleted GROUP BY kind ORDER BY kind";
  expect(await sql(published)).toBe("conversation\t4\nmessage\t6\nend_user\t3\n");
  expect(await rowsOf("acme")).toEqual(without(before, "alba"));
  expect(await rowsOf("globex")).toEqual(ofOther);
  expect(await rowsOf("later")).toEqual({
    ...without(ofLater, "an old summary"),
    conversation_updates: ofLater["conversation_updates"]?.filter((line) => !line.includes('"old"')),
    record_dates: ofLater["record_dates"]?.filter((line) => !line.includes('/old"')),
  });
  expect((await rowsOf("later"))["landing"]).toHaveLength(2);
  const gone = (table: string) =>
    (before[table]?.length ?? 0) - (without(before, "alba")[table] ?? []).length;
  const tables = ["conversations", "conversation_updates", "handoffs", "messages", "end_users", "landing"];
  const counts = (await intake.find("acme", id))?.deleted ?? {};
  expect(tables.map((table) => [table, counts[table]])).toEqual(tables.map((table) => [table, gone(table)]));
  expect(counts["record_dates"]).toBeGreaterThan(0);
  expect(await intake.find("acme", id)).toMatchObject({
    status: "completed",
    subject: { email: null, identifiers: [] },
  });
  for (const table of ["job_keys", "erasure_keys"]) {
    expect(await sql(`SELECT id FROM ${table}`)).toBe("kept-message\n");
    await sql(`ALTER TABLE ${table} DELETE WHERE 1 SETTINGS mutations_sync = 2`);
  }
  for (const table of TABLES) {
    await sql(`ALTER TABLE ${table} DELETE WHERE client_id = 'globex' SETTINGS mutations_sync = 2`);
  }
  const { found, searchedBytes } = await findInActiveParts(stack.clickhouse.url("migrator"), [
    "alba@example.com",
    "ALBA@example.com",
    "alba-chatter",
    "alba-user",
    "alba-handoff",
    "kept-chatter",
  ]);
  // Deletions stay in `changes` for a month.
  expect(Object.keys(found).toSorted()).toEqual(["alba-user", "kept-chatter"]);
  expect(searchedBytes).toBeGreaterThan(1_000);
});

it("erases again what a backup has brought back, also where only a hash knows the person", async () => {
  const client = "restored";
  const since = new Date().toISOString();
  const { records, subject } = person(client, "alma");
  await write([...records, ...neighbour(client)]);
  await request(client, subject);
  await run();
  const kept = await rowsOf(client);
  const at = { client, time: DAY_0 };
  const stale = [
    // Versions replaced before the request: their ids were never suppressed.
    conversation(at, "stale-conversation", DAY_0, DAY_0, { end_user_id: "alma-user" }),
    message(at, "stale-message", DAY_0, "kept-conversation", { recipient: "alma-chatter" }),
    endUser(at, "stale-user", { profile: { email: "Alma@Example.com" } }),
  ];
  const later = Date.now() * 1000 + DAY;
  await write([...records, ...stale, conversation(at, "new", later, later, { end_user_id: "alma-user" })]);
  const brought = await rowsOf(client);
  // It was suppressed before the backup and deleted after it.
  await sql(`ALTER TABLE suppressions UPDATE added_at = added_at - INTERVAL 2 DAY WHERE client_id = '${client}'
    SETTINGS mutations_sync = 2`);

  const notSince = { since: new Date(Date.now() + 60_000).toISOString(), dryRun: false };
  expect(await run(erasureDeps(), "not-since", notSince)).toMatchObject({
    again: { ids: 0, persons: 0 },
    rounds: 0,
  });
  expect(await run(erasureDeps(), "dry", { since, dryRun: true })).toMatchObject({
    again: { dryRun: true, persons: 3 },
    deleted: { landing: 13 },
    rounds: 0,
  });
  expect(await rowsOf(client)).toEqual(brought);

  const result = await run(erasureDeps(), "again", { since, dryRun: false });
  expect(result).toMatchObject({ found: { end_users: 2 }, deleted: { landing: 13 }, rounds: 1 });
  const left = await rowsOf(client);
  expect(without(without(left, '"new"'), '/new"')).toEqual(kept);
  expect(left["landing"]).toHaveLength((kept["landing"] ?? []).length + 1);
  expect(await run(erasureDeps(), "again", { since, dryRun: false })).toMatchObject({ deleted: {} });
  expect(await rowsOf(client)).toEqual(left);
  expect(await keysLeft()).toBe("0\n");
});

it("reaches no profile by a chatter id, neither of who chatted nor of that id", async () => {
  const client = "chatters";
  const at = { client, time: DAY_0 };
  await write([
    conversation(at, "chat", DAY_0, DAY_0, { chatter_id: "ida", end_user_id: "ida-profile" }),
    message(at, "said", DAY_0, "chat", { chatter_id: "ida" }),
    endUser(at, "ida-profile", { profile: { email: "ida@example.com" } }),
    endUser(at, "ida", { profile: { first_name: "has the id" } }),
  ]);
  const before = await rowsOf(client);
  await request(client, chatter("ida"));
  expect(await run()).toMatchObject({ requests: 1, found: { conversations: 1, messages: 1, end_users: 0 } });
  const after = await rowsOf(client);
  expect(after).toMatchObject({ conversations: [], messages: [], end_users: before["end_users"] });
  expect(after["end_users"]).toHaveLength(2);
  expect(after["landing"]).toHaveLength(2);
});

it("compares e-mail addresses in ClickHouse as everywhere else", async () => {
  const isOdd = (character: string): boolean =>
    character !== character.toLowerCase() || /\s|\p{Cf}|\p{Cc}/u.test(character);
  // ClickHouse 25.8 knows the characters of Unicode 15.
  const SINCE_UNICODE_16 = /[\u1c89\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc]/u;
  const ofServer = Number.parseInt(await sql("SELECT version() FORMAT TSV"), 10);
  const characters = Array.from({ length: 0x1_0000 }, (_, code) => code)
    .filter((code) => code !== 0 && (code < 0xd8_00 || code > 0xdf_ff))
    .map((code) => String.fromCodePoint(code))
    .filter((character) => isOdd(character) && !(ofServer < 26 && SINCE_UNICODE_16.test(character)));
  const texts = [
    ...characters.map((character) => `${character}b${character}@X${character}`),
    " \t\u00a0A@ΑΣ\u3000",
    "ΑΣ b",
  ];
  const list = texts.map((text) => `unhex('${Buffer.from(text).toString("hex")}')`).join();
  const answer = await sql(
    `SELECT ${emailFormSql("t")} AS form FROM (SELECT arrayJoin([${list}]) AS t) FORMAT JSONEachRow`,
  );
  const forms = answer
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { form: string }).form);
  expect(forms).toEqual(texts.map(emailForm));
  expect(emailForm("\u00a0 A.B@Example.COM\t")).toBe("a.b@example.com");
});

it("does many requests as one batch, with a few mutations", async () => {
  const people = Array.from({ length: PEOPLE }, (_, at) => person("many", `p${at}x`));
  await write([...people.flatMap(({ records }) => records), ...neighbour("many")]);
  for (const { subject } of people) await request("many", subject);
  const countMutations = () => sql("SELECT count() FROM system.mutations WHERE NOT command LIKE '%INDEX%'");
  const before = Number(await countMutations());
  expect(await run()).toMatchObject({
    requests: PEOPLE,
    found: { conversations: 2 * PEOPLE, messages: 3 * PEOPLE, end_users: PEOPLE },
  });
  expect(Number(await countMutations()) - before).toBeLessThanOrEqual(9 * SHARDS);
  const rows = await rowsOf("many");
  expect(
    Object.values(rows)
      .flat()
      .filter((line) => !line.includes("kept-")),
  ).toEqual([]);
  expect(await run()).toMatchObject({ requests: 0, rounds: 0 });
});

it("lets a request wait that would reach more than its share, and does the others", async () => {
  const client = "large";
  const at = { client, time: DAY_0 };
  const said = (name: string, sender: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      message(at, `${name}-${index}`, DAY_0 + index, "kept-conversation", { sender }),
    );
  await write([...neighbour(client), ...said("of-agent", "Agent Smith", 20), ...said("of-ada", "ada", 2)]);
  await write([...said("of-bob", "bob", 2), ...said("of-eve", "eve", 12)]);
  const of = (...values: string[]): Promise<string> => request(client, chatter(...values));
  const agent = await of("Agent Smith");
  const again = await of("Agent Smith", "nobody");
  const [ada, bob, eve] = [await of("ada"), await of("bob"), await of("eve")];
  const statusOf = async (id: string) => (await intake.find(client, id))?.status;
  const before = await rowsOf(client);
  const smith = { clientId: client, subject: "chatter_id:Agent Smith", createdBefore: Date.now() * 1000 };
  const counted = { id: "counted", erases: false };
  await store.note(counted, [{ ...smith, requestId: "preview/counted" }]);
  await store.collect(counted);
  expect(await store.count(counted)).toMatchObject({ messages: 20 });
  // A tenth of 39 records is below 5.
  const deps = () => erasureDeps({ percent: 10, records: 5 });
  expect(await run(deps())).toMatchObject({ requests: 2, held: 3, found: { messages: 4 } });
  for (const id of [agent, again, eve]) expect(await statusOf(id)).toBe("awaiting_approval");
  for (const id of [ada, bob]) expect(await statusOf(id)).toBe("completed");
  const left = without(without(before, "of-ada"), "of-bob");
  expect(await rowsOf(client)).toEqual(left);
  const published = `SELECT uniqExact(id) FROM changes WHERE client_id = '${client}' AND deleted`;
  expect(await sql(published)).toBe("4\n");
  await store.forget(counted, new AbortController().signal);
  expect(await completion.open(Date.now() - 60_000)).toMatchObject({
    count: 3,
    awaitingApproval: 3,
    overdue: 0,
  });
  expect(await run(deps())).toMatchObject({ requests: 0, held: 0 });
  expect(await rowsOf(client)).toEqual(left);
  expect(await sql(`SELECT count() FROM suppressions WHERE request_id IN ('${agent}', '${again}')`)).toBe(
    "0\n",
  );

  await intake.setStatus(client, eve, "refused");
  await intake.setStatus(client, agent, "approved");
  expect(await run(deps())).toMatchObject({ requests: 1, held: 0, found: { messages: 20 } });
  expect(await rowsOf(client)).toEqual(without(left, "of-agent"));
  expect(await statusOf(agent)).toBe("completed");
  expect(await statusOf(again)).toBe("awaiting_approval");
  expect(await intake.find(client, eve)).toMatchObject({
    status: "refused",
    subject: { email: null, identifiers: [] },
  });
  expect(await sql(`SELECT count() FROM data_subject_requests WHERE identifiers LIKE '%eve%'`)).toBe("0\n");
  await intake.setStatus(client, again, "refused");
});

const readableOf = async (client: string) => {
  const session = sessions.open(stack.clickhouse.url("reader"), topology);
  const reader = createReader({ session, lookups: session });
  const window = { clientId: client, since: 0, to: Date.now() * 1000, pageSize: 1_000, wholeTies: false };
  const published: string[] = [];
  for (const kind of ["conversation", "message", "end_user"] as const) {
    const after = { date: 0, id: "" };
    const query = { clientId: client, kind, after, stableUpTo: LATER, pageSize: 1_000 };
    published.push(...(await readPage(await reader.changes(query))));
  }
  const isDeleted = (record: string): boolean => record.includes('"deleted":true');
  return {
    ids: [
      ...(await readPage(await reader.conversationsByCreation(window))),
      ...(await readPage(await reader.messagesByCreation(window))),
      ...(await readPage(await reader.endUsers({ clientId: client, limit: 1_000 }))),
    ].map((record) => /"(?:_id|end_user_id)":"([^"]*)"/.exec(record)?.[1] ?? ""),
    live: published.filter((record) => !isDeleted(record)),
    deleted: published.filter(isDeleted),
  };
};

it("hides a person while another run deletes, and publishes the deletions when the rows are gone", async () => {
  const client = "hidden";
  const { records, subject } = person(client, "nora");
  await write([...records, ...neighbour(client)], [...TABLES, "changes"]);
  const all = await readableOf(client);
  const kept = ["kept-conversation", "kept-message", "kept-user"];
  expect(all.ids).toHaveLength(kept.length + 6);
  const id = await request(client, subject);
  const large = await request(client, chatter("kept-chatter"));
  const deps = erasureDeps({ percent: 0, records: 0 });
  const approval = async () => {
    await completion.hold(client, large);
    return 1;
  };
  const exclusive = createExclusive({ redis, lockMs: 10_000 });
  const over = new AbortController();
  const deletes = exclusive.run("erasure deletes", over.signal, (signal) => once(signal, "abort"));
  await until("another run deletes", 5_000, async () => {
    const isFree = await exclusive.unlessTaken("erasure deletes", over.signal, () => Promise.resolve(true));
    return isFree === undefined;
  });
  const waiting = { ...deps, approval, exclusive };
  const dying = { ...waiting, store: { ...store, hide: () => Promise.reject(KILLED) } };
  await expect(run(dying)).rejects.toBe(KILLED);
  expect((await readableOf(client)).ids).toEqual(all.ids);
  expect(await intake.find(client, id)).toMatchObject({ status: "running", hiddenAt: null });
  const { generation } = await coordination.look();
  expect(await run({ ...waiting, approval: deps.approval })).toMatchObject({
    hidden: 1,
    requests: 0,
    rounds: 0,
  });
  expect((await coordination.look()).generation).toBeGreaterThan(generation);
  // The request's job retries until it is carried out; a repeated erasure does not wait either.
  const isLeft = { code: "erasure_running", retryable: true };
  const own = { clientId: client, requestId: id };
  await expect(run(waiting, "own", undefined, own)).rejects.toMatchObject(isLeft);
  for (const dryRun of [true, false]) {
    const again = { since: new Date(0).toISOString(), dryRun };
    await expect(run(waiting, "again", again)).rejects.toMatchObject(isLeft);
  }
  const hidden = await readableOf(client);
  expect(hidden.ids.toSorted()).toEqual(kept);
  expect(hidden.live).toHaveLength(kept.length);
  expect(hidden.deleted).toEqual([]);
  expect((await rowsOf(client))["messages"]?.join()).toContain("nora");
  expect(await intake.find(client, id)).toMatchObject({ status: "running", hiddenAt: expect.any(Number) });
  expect(await intake.find(client, large)).toMatchObject({ status: "awaiting_approval", hiddenAt: null });

  over.abort();
  await deletes;
  expect(await run({ ...waiting, approval: deps.approval }, "own", undefined, own)).toMatchObject({
    hidden: 0,
    requests: 1,
  });
  const erased = await readableOf(client);
  expect(erased.ids.toSorted()).toEqual(kept);
  expect(erased.live).toEqual(hidden.live);
  expect(erased.deleted).toHaveLength(6);
  expect(await sql("SELECT DISTINCT request_id, phase FROM erasure_keys")).toBe(`${large}\tfound\n`);
  expect(await intake.find(client, id)).toMatchObject({ status: "completed", hiddenAt: expect.any(Number) });
  await intake.setStatus(client, large, "refused");
});

it("does not carry out what another run or an operator has decided about meanwhile", async () => {
  const client = "decided";
  await write(neighbour(client));
  const before = await rowsOf(client);
  const id = await request(client, chatter("kept-chatter"));
  const statusOf = async () => (await intake.find(client, id))?.status;
  const approval = async () => {
    await completion.hold(client, id);
    return 0;
  };
  expect(await run({ ...erasureDeps(), approval })).toMatchObject({ hidden: 0, requests: 0 });
  expect((await readableOf(client)).ids).toHaveLength(3);
  const found = await intake.find(client, id);
  if (found === null) throw new Error("the request is gone");
  const late = { id: "late", erases: false };
  await store.note(late, subjectsOfRequest(found));
  await store.hide(late);
  await completion.complete(late);
  expect(await statusOf()).toBe("awaiting_approval");
  expect(await rowsOf(client)).toEqual(before);
  // An operator refuses while another's approved run has just begun.
  await intake.setStatus(client, id, "approved");
  expect(await completion.begin(late)).toBe(1);
  await intake.setStatus(client, id, "refused");
  expect(await statusOf()).toBe("running");
  await run();
  expect(await statusOf()).toBe("completed");
});

const interruptedAt = (
  at: number,
  after: boolean,
  act: () => Promise<unknown>,
): { deps: ErasureDeps; calls: () => number } => {
  let calls = 0;
  const counting = <T extends object>(part: T): T =>
    new Proxy(part, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...args: unknown[]) => {
          calls += 1;
          const isNow = calls === at;
          if (isNow && !after) await act();
          const answer: unknown = await (method as (...all: unknown[]) => unknown).apply(target, args);
          if (isNow && after) await act();
          return answer;
        };
      },
    });
  const deps = erasureDeps();
  return {
    deps: {
      ...deps,
      requests: counting(deps.requests),
      store: counting(deps.store),
      suppressions: counting(deps.suppressions),
      judgement: counting(deps.judgement),
    },
    calls: () => calls,
  };
};

it("comes to the same end wherever it is killed", async () => {
  const client = "killed";
  await write(neighbour(client));
  const before = await rowsOf(client);
  const ends: number[] = [];
  for (const at of KILLED_AT) {
    const mark = `k${at}x`;
    const { records, subject } = person(client, mark);
    await write(records);
    const id = await request(client, subject);
    const { deps, calls } = interruptedAt(at, at % 2 === 0, () => Promise.reject(KILLED));
    const killed = await run(deps, "request").then(
      () => false,
      (error: unknown) => (error as ServiceError).code === KILLED.code,
    );
    if (killed) await run(erasureDeps(), "request");
    expect(await rowsOf(client), `killed at ${at}`).toEqual(before);
    expect(await intake.find(client, id)).toMatchObject({ status: "completed", subject: { email: null } });
    ends.push(calls());
    if (!killed) break;
  }
  expect(Math.max(...ends)).toBeGreaterThan(10);
  const { found } = await findInActiveParts(
    stack.clickhouse.url("migrator"),
    KILLED_AT.map((at) => `k${at}x-chatter`),
  );
  expect(found).toEqual({});
});

it("ends as one when another run comes in between any two of its steps", async () => {
  const client = "paused";
  await write(neighbour(client));
  const before = await rowsOf(client);
  for (const at of PAUSED_AT) {
    const mark = `p${at}x`;
    const { records, subject } = person(client, mark);
    const found = conversation({ client, time: DAY_0 }, `${mark}-found`, DAY_0, DAY_0, {});
    await write([...records, found]);
    await suppressions.addFound([
      { clientId: client, kind: "conversation", value: found.id, createdBefore: Date.now() * 1000 },
    ]);
    const id = await request(client, subject);
    const { deps, calls } = interruptedAt(at, at % 2 === 0, () => run(erasureDeps(), "other"));
    await run(deps, "request");
    expect(await rowsOf(client), `paused at ${at}`).toEqual(before);
    const done = await intake.find(client, id);
    expect(done).toMatchObject({ status: "completed", subject: { email: null } });
    expect(done?.deleted).toMatchObject({ messages: 4 });
    await run();
    expect(await keysLeft(), `paused at ${at}`).toBe("0\n");
    if (calls() < at) break;
  }
});

it("bears a second run at once", async () => {
  const { records, subject } = person("twice", "dora");
  await write([...records, ...neighbour("twice")]);
  const before = await rowsOf("twice");
  const id = await request("twice", subject);
  await Promise.all([run(erasureDeps(), "one"), run(erasureDeps(), "two")]);
  expect(await rowsOf("twice")).toEqual(without(before, "dora"));
  expect((await intake.find("twice", id))?.status).toBe("completed");
  await run();
  expect(await keysLeft()).toBe("0\n");
});

const suppresses = async (gate: SuppressionGate, record: ExportRecord): Promise<boolean> =>
  (await gate.suppresses([record]))[0] === true;

const createGate = (more: Partial<Omit<SuppressionStore, "add">> = {}): SuppressionGate =>
  createSuppressionGate({
    stamps: coordination,
    store: { ...suppressions, ...more },
    secret: SECRET,
    maxHeld: 1_000_000,
    onLost: (error) => {
      throw error;
    },
    metrics: createMetrics({ service: "test" }),
    log,
  });

const startWriter = async (): Promise<SuppressionGate> => {
  const gate = createGate();
  await gate.start();
  return gate;
};

const insertOf = (record: ExportRecord, ticket: WriteTicket, table: string): Promise<void> => {
  const batch = createBatch(record.type, 1024);
  batch.add(record);
  batch.fillUpload(ticket.stamp);
  const found = batch.inserts(0, 1).find((one) => one.table === table);
  if (found === undefined) throw new Error(`no rows of ${table}`);
  return writer.insert(found, ticket);
};

it("leaves nothing that a writer has let through before, however long it was paused", async () => {
  const gate = await startWriter();
  const late = conversation({ client: "late", time: DAY_0 }, "late", DAY_0, DAY_0, { chatter_id: "eve" });
  await request("late", chatter("eve"));
  const ticket = await gate.ticket();
  expect(await suppresses(gate, late)).toBe(false);
  // One table is written, then the process pauses.
  await insertOf(late, ticket, "conversations");
  expect(await run(erasureDeps())).toMatchObject({ requests: 1, found: { conversations: 1 } });
  for (const table of ["record_dates", "changes", "conversation_updates", "conversations"])
    await expect(insertOf(late, ticket, table), table).rejects.toSatisfy(isStaleTicket);
  expect((await rowsOf("late"))["conversations"]).toEqual([]);
  const judgement = gate.judgement();
  await gate.ticket();
  expect(gate.judgement()).not.toBe(judgement);
  expect(await suppresses(gate, late)).toBe(true);
  const child = message({ client: "late", time: DAY_0 }, "child", DAY_0, "late");
  expect(await suppresses(gate, child)).toBe(true);
  expect(await suppresses(gate, { ...child, dateCreated: Date.now() * 1000 + DAY })).toBe(false);
  expect(await suppresses(gate, { ...child, clientId: "elsewhere" })).toBe(false);
  await gate.stop();
});

it("waits for no process that may not write yet, and that one leaves out what was erased meanwhile", async () => {
  const world = { refuses: true, asked: 0 };
  const gate = createGate({
    clients: async (since) => {
      world.asked += 1;
      if (world.refuses) throw new ServiceError("refused", "wrong password", { retryable: true });
      return suppressions.clients(since);
    },
  });
  const started = gate.start();
  await until("it has tried to read", 10_000, () => world.asked > 0);
  const record = conversation({ client: "early", time: DAY_0 }, "early", DAY_0, DAY_0, { chatter_id: "ida" });
  await write([record]);
  await request("early", chatter("ida"));
  expect(await run(erasureDeps())).toMatchObject({ requests: 1, found: { conversations: 1 } });
  world.refuses = false;
  await started;
  expect(await suppresses(gate, record)).toBe(true);
  await gate.stop();
});

it("erases what was created until a person asked again, although the first request was still open", async () => {
  const at = Date.now();
  const openAt = (now: number): Promise<{ requestId: string }> =>
    createRequestStore({
      session: sessions.open(stack.clickhouse.url("intake")),
      now: () => now,
      idSecret: "a secret of the tests",
    }).open("repeats", { email: null, ...chatter("lou") });
  const first = await openAt(at - 60_000);
  const [early, between] = [DAY_0, (at - 30_000) * 1000];
  const lou = { chatter_id: "lou" };
  await write([
    conversation({ client: "repeats", time: at * 1000 }, "early", early, early, lou),
    conversation({ client: "repeats", time: at * 1000 }, "between", between, between, lou),
  ]);
  const second = await openAt(at);
  await run();
  expect(Object.values(await rowsOf("repeats")).flat()).toEqual([]);
  for (const [{ requestId }, conversations] of [
    [first, 1],
    [second, 2],
  ] as const)
    expect(await intake.find("repeats", requestId)).toMatchObject({
      status: "completed",
      deleted: { conversations, landing: conversations },
    });
});

it("leaves end users that were created after the request in the change feed", async () => {
  const client = "anew";
  const later = Date.now() * 1000 + DAY;
  const profile = (id: string, time: number, created: Micros): ExportRecord =>
    endUser({ client, time: DAY_0 + time }, id, { created_at: formatTimestamp(created) });
  const ids = ["again", "flying", "gone"];
  await write(
    ids.map((id) => profile(id, 1, DAY_0)),
    [...TABLES, "changes"],
  );
  await request(client, { identifiers: ids.map((value) => ({ type: "end_user_id", value })) });
  await write([profile("again", 2, later)], [...TABLES, "changes"]);
  const flying = profile("flying", 2, later);
  let ticket = ticketNow();
  const collect: ErasureStore["collect"] = async (one) => {
    await store.collect(one);
    if (!one.erases) return;
    // A batch is between its entry and its row.
    ticket = ticketNow();
    await insertOf(flying, ticket, "changes");
  };
  await run({ ...erasureDeps(), store: { ...store, collect } });
  // The entry went after its stamp was refused: the batch begins anew.
  await expect(insertOf(flying, ticket, "end_users")).rejects.toSatisfy(isStaleTicket);
  ticket = ticketNow();
  for (const table of ["changes", "end_users"]) await insertOf(flying, ticket, table);
  // As after 32 days.
  await sql(
    `ALTER TABLE changes DELETE WHERE client_id = '${client}' AND deleted SETTINGS mutations_sync = 2`,
  );
  expect(await sql(`SELECT DISTINCT id FROM changes WHERE client_id = '${client}' ORDER BY id`)).toBe(
    "again\nflying\n",
  );
  const { live } = await readableOf(client);
  expect(live.map((record) => (JSON.parse(record) as { end_user_id: string }).end_user_id)).toEqual([
    "again",
    "flying",
  ]);
});

it("judges a record by its live row, and brings no older export back, nor does a replay", async () => {
  const client = "judged";
  const future = Date.now() * 1000 + 40 * DAY;
  const pia = { chatter_id: "pia" };
  const exported = (id: string, time: number, created: Micros): ExportRecord[] => {
    const at = { client, time: DAY_0 + time, offset: (offset += 1) };
    return [
      conversation(at, id, created, created, pia),
      message(at, `${id}-message`, created, "kept-conversation", pia),
    ];
  };
  const wrong = exported("corrected", 1, future);
  const later = exported("later", 2, future);
  await write([...wrong, ...exported("corrected", 2, DAY_0), ...exported("later", 1, DAY_0)]);
  await write([...later, ...neighbour(client)]);
  await request(client, chatter("pia"));
  const gate = await startWriter();
  await run();
  const dated = (table: string, id: string): Promise<string> =>
    sql(`SELECT ${id}, date_created > now() FROM ${table} WHERE client_id = '${client}' ORDER BY ALL`);
  expect(await dated("conversations", "conversation_id")).toBe("kept-conversation\t0\nlater\t1\n");
  expect(await dated("messages", "message_id")).toBe("kept-message\t0\nlater-message\t1\n");
  expect(
    Object.values(await rowsOf(client))
      .flat()
      .join(),
  ).not.toContain("corrected");
  await gate.ticket();
  for (const record of wrong) expect(await suppresses(gate, record)).toBe(true);
  for (const record of later) expect(await suppresses(gate, record)).toBe(false);
  await gate.stop();
});

/** Runs check again what was suppressed ten minutes to a day ago, as slow tests before may have. */
const agePast = (): Promise<unknown> =>
  sql(
    `ALTER TABLE suppressions UPDATE added_at = added_at - INTERVAL 2 DAY WHERE 1 SETTINGS mutations_sync = 2`,
  );

it("erases what a late event shows to be the person's", async () => {
  await agePast();
  const gate = await startWriter();
  const at = (time: number) => ({ client: "shown", time: DAY_0 + time });
  await write([
    endUser(at(0), "fay", { profile: { email: "fay@example.com" } }),
    conversation(at(0), "unnamed", DAY_0, DAY_0, {}),
    message(at(0), "of-unnamed", DAY_0, "unnamed"),
  ]);
  await request("shown", { email: "fay@example.com" });
  await run(erasureDeps());
  await gate.ticket();
  expect(await suppresses(gate, endUser(at(1), "fay"))).toBe(true);
  expect((await rowsOf("shown"))["messages"]).toHaveLength(1);
  expect(await suppresses(gate, conversation(at(1), "unnamed", DAY_0, DAY_0, { end_user_id: "fay" }))).toBe(
    true,
  );
  await gate.stop();
  expect(await run()).toMatchObject({ requests: 0, found: { conversations: 1, messages: 1 } });
  expect(Object.values(await rowsOf("shown")).flat()).toEqual([]);
  // What was found is checked once.
  expect(await searches(run)).toBe(0);
});

const searches = async (work: (deps: ErasureDeps) => Promise<unknown>): Promise<number> => {
  let count = 0;
  const collect: ErasureStore["collect"] = (one) => {
    count += 1;
    return store.collect(one);
  };
  await work({ ...erasureDeps(), store: { ...store, collect } });
  return count;
};

it("erases what was created between two requests once the profile comes again", async () => {
  await agePast();
  const client = "between";
  const now = Date.now();
  const subject = { email: "ora@example.com" };
  const openAt = (instant: number): Promise<unknown> =>
    createRequestStore({
      session: sessions.open(stack.clickhouse.url("intake")),
      now: () => instant,
      idSecret: "a secret of the tests",
    }).open(client, { ...subject, identifiers: [] });
  const at = { client, time: DAY_0 };
  const profile = endUser(at, "ora", { profile: subject });
  const early = conversation(at, "early", DAY_0, DAY_0, { end_user_id: "ora" });
  await write([profile, early]);
  await openAt(now - 60_000);
  await run();
  const gate = await startWriter();
  const since = (now - 30_000) * 1000;
  const later = { client, time: now * 1000 };
  const by = { end_user_id: "ora" };
  await write([
    conversation(later, "later", since, since, by),
    message(later, "of-later", since, "later"),
    message(later, "of-early", since, "early"),
    conversation(later, "kept", (now + 60_000) * 1000, (now + 60_000) * 1000, by),
  ]);
  await openAt(now);
  expect(await run()).toMatchObject({ requests: 1, found: { conversations: 0 } });
  await gate.ticket();
  expect(await gate.suppresses([profile, early])).toEqual([true, true]);
  await gate.stop();
  expect(await run()).toMatchObject({ requests: 0, found: { conversations: 1, messages: 2 } });
  expect((await rowsOf(client))["conversations"]).toHaveLength(1);
  expect(await searches(run)).toBe(0);
});

it("looks at what is found up to a later instant while a run ends", async () => {
  await agePast();
  const client = "ending";
  const now = Date.now() * 1000;
  const since = now - 30 * SECOND;
  const find = (createdBefore: number): Promise<void> =>
    suppressions.addFound([
      { clientId: client, kind: "end_user", value: "pia", createdBefore },
      { clientId: client, kind: "conversation", value: "gone", createdBefore },
    ]);
  const at = { client, time: now };
  await write([
    conversation(at, "by-pia", since, since, { end_user_id: "pia" }),
    message(at, "of-gone", since, "gone"),
  ]);
  await find(since);
  const settleFound: ErasureStore["settleFound"] = async (one, signal) => {
    await find(now);
    await store.settleFound(one, signal);
  };
  expect(await run({ ...erasureDeps(), store: { ...store, settleFound } })).toMatchObject({
    found: { conversations: 0, messages: 0 },
  });
  expect(await run()).toMatchObject({ requests: 0, found: { conversations: 1, messages: 1 } });
  expect(Object.values(await rowsOf(client)).flat()).toEqual([]);
  expect(await searches(run)).toBe(0);
});

it("looks at what was suppressed once more, for a writer that nobody knew of", async () => {
  await agePast();
  const at = { client: "slipped", time: DAY_0 };
  const record = conversation(at, "slipped", DAY_0, DAY_0, { chatter_id: "gus" });
  await write([record]);
  await request("slipped", chatter("gus"));
  await run();
  await write([record, message(at, "slipped-message", DAY_0, "slipped")]);
  expect(await searches(run)).toBe(0);
  await sql(`ALTER TABLE suppressions UPDATE added_at = added_at - INTERVAL 1 HOUR WHERE client_id = 'slipped'
    SETTINGS mutations_sync = 2`);
  expect(await run()).toMatchObject({ requests: 0, found: { conversations: 1, messages: 1 } });
  expect(Object.values(await rowsOf("slipped")).flat()).toEqual([]);
  expect(await searches(run)).toBe(0);
});

it("reads only the suppressions that may be new", async () => {
  const since = async (instant: number | null): Promise<{ clients: string[]; hashes: number }> => {
    let hashes = 0;
    const take = (): boolean => (hashes += 1) > 0;
    const clients = (await suppressions.clients(instant)).map(({ clientId }) => clientId);
    expect(await suppressions.hashes(take, { since: instant, clients })).toBe(true);
    return { clients, hashes };
  };
  const all = await since(null);
  expect(all.clients).toContain("slipped");
  const now = await suppressions.serverTime();
  expect((await since(now - 1_800_000)).clients).toContain("slipped");
  expect(await since(now + 60_000)).toEqual({ clients: [], hashes: 0 });
  const { clients } = all;
  expect(await suppressions.hashes(() => false, { since: null, clients: [] })).toBe(true);
  expect(await suppressions.hashes(() => false, { since: null, clients })).toBe(false);
});

it("refuses to work with another secret than the first", async () => {
  await suppressions.claimSecret(createSubjectHash(SECRET).ofSecret);
  const other = { ...erasureDeps(), hash: createSubjectHash("another secret of the tests of erasure") };
  await expect(run(other)).rejects.toMatchObject({ code: "suppression_secret", retryable: false });
});

it("goes on with what a dead run has begun to erase for no request", async () => {
  const client = "left";
  const { records } = person(client, "mona");
  await write([...records, ...neighbour(client)]);
  const before = await rowsOf(client);
  await suppressions.addFound([
    { clientId: client, kind: "end_user", value: "mona-user", createdBefore: Date.now() * 1000 },
  ]);
  const dying = { ...store, publish: () => Promise.reject(KILLED) };
  await expect(run({ ...erasureDeps(), store: dying })).rejects.toBe(KILLED);
  const left = await rowsOf(client);
  expect(left).not.toEqual(before);
  const published = `SELECT uniqExact(id) FROM changes WHERE client_id = '${client}' AND deleted`;
  expect(await sql(published)).toBe("0\n");
  await run();
  expect(await sql(published)).toBe("3\n");
  expect(await rowsOf(client)).toEqual(left);
  expect(await keysLeft()).toBe("0\n");
});

it("finds no more rows in each attempt of a job that dies", async () => {
  const client = "dying";
  const { records, subject } = person(client, "nina");
  await write([...records, ...neighbour(client)]);
  await suppressions.addFound([
    { clientId: client, kind: "end_user", value: "nina-user", createdBefore: Date.now() * 1000 },
    { clientId: client, kind: "conversation", value: "nina-by-user", createdBefore: Date.now() * 1000 },
  ]);
  await request(client, subject);
  const since = new Date(0).toISOString();
  const dying = { ...store, erase: () => Promise.reject(KILLED) };
  const keys = `SELECT phase, kind, startsWith(request_id, 'found/'), startsWith(request_id, 'again/'), count()
    FROM erasure_keys FINAL WHERE kind != 'run' AND client_id = '${client}' GROUP BY ALL ORDER BY ALL`;
  const attempt = async (): Promise<string> => {
    await expect(run({ ...erasureDeps(), store: dying }, "again", { since, dryRun: false })).rejects.toBe(
      KILLED,
    );
    return sql(keys);
  };
  const first = await attempt();
  expect(first).toContain("deleting");
  expect(await attempt()).toBe(first);
  expect(await attempt()).toBe(first);
  await run(erasureDeps(), "again", { since, dryRun: false });
  expect(without(await rowsOf(client), "kept-")).toEqual(await rowsOf("nobody"));
  await run();
  expect(await keysLeft()).toBe("0\n");
});

it("forgets after a day what was found for a run that died", async () => {
  const key = { clientId: "left", subject: "chatter_id:left", createdBefore: LATER };
  for (const id of ["preview/dead", "found/dead", "preview/living"])
    await store.note({ id: "any", erases: false }, [{ ...key, requestId: id }]);
  await sql(
    "ALTER TABLE erasure_keys UPDATE added_at = now() - INTERVAL 25 HOUR WHERE request_id LIKE '%/dead' SETTINGS mutations_sync = 2",
  );
  await run();
  expect(await sql("SELECT DISTINCT request_id FROM erasure_keys")).toBe("preview/living\n");
  await store.forget({ id: "any", erases: false }, new AbortController().signal);
  expect(await keysLeft()).toBe("0\n");
});

it("dates suppressions behind what writers have read, although ClickHouse's clock was set back", async () => {
  await agePast();
  const client = "set-back";
  const at = { client, time: DAY_0 };
  await write([
    conversation(at, "named", DAY_0, DAY_0, { chatter_id: "uma" }),
    message(at, "of-found", DAY_0, "found"),
  ]);
  await suppressions.addFound([
    { clientId: client, kind: "conversation", value: "found", createdBefore: Date.now() * 1000 },
  ]);
  await request(client, chatter("uma"));
  const read = Date.now() * 1000 + 3_600 * SECOND;
  await coordination.announce(read);
  // The fence waits for the clock.
  await run({ ...erasureDeps(), store: { ...store, publish: () => Promise.resolve() } });
  const added =
    await sql(`SELECT kind, request_id = 'looked at', min(toUnixTimestamp64Micro(added_at)) >= ${read}
    FROM suppressions WHERE client_id = '${client}' AND request_id != 'found' GROUP BY ALL ORDER BY ALL`);
  await sql("ALTER TABLE coordination DELETE WHERE name = 'announced' SETTINGS mutations_sync = 2");
  expect(added.trim().split("\n")).toEqual([
    "conversation\t0\t1",
    "conversation\t1\t1",
    "message\t1\t1",
    "subject\t0\t1",
  ]);
});
