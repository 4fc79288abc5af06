import {
  createDeadLetterReader,
  type DeadLetter,
  createRangeReader,
  type DeadLetterReader,
  type RangeReader,
} from "@conversation-export/bus";
import {
  type JobClient,
  type JobType,
  type JobView,
  reconcileJob,
  replayJob,
  retentionJob,
} from "@conversation-export/queue";
import { createClientStore, createReconcileStore } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startStatementGate, type StatementGate } from "../faults/statement-gate.ts";
import { handMade } from "../sample/hand-made.ts";
import { readMetric } from "../system/metrics-text.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { resultOfJob, startJobClient } from "../system/operator-jobs.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { bySize } from "../system/size.ts";
import { startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { topologyOf } from "../system/shards.ts";
import { createSessions } from "../system/warehouse-sessions.ts";

const JOBS_ENV = { JOB_LOCK_MS: "2000", ...NO_SCHEDULES };
const ALL = replayJob.data.parse({});

let system: System;
let ingest: ServiceProcess;
let jobs: ServiceProcess;
let gate: StatementGate<"note">;
let client: JobClient;
let reader: RangeReader;
let deadLetters: DeadLetterReader;

const startJobs = async (): Promise<void> => {
  const url = gate.through(system.environment("jobs")["CLICKHOUSE_URL"] ?? "");
  jobs = await system.service("jobs", { ...JOBS_ENV, CLICKHOUSE_URL: url });
};

beforeAll(async () => {
  system = await startSystem("upkeep-jobs");
  const { host, port } = system.stack.clickhouse;
  gate = await startStatementGate({
    target: { host, port },
    jobOf: (text) => (text.includes("INSERT INTO replayed_dead_letters") ? "note" : null),
  });
  // Rejects records of the near future until a test allows them.
  ingest = await system.service("ingest", { MAX_TIME_AHEAD_SECONDS: "0" });
  await startJobs();
  client = await startJobClient(system.stack.redis.url);
  reader = createRangeReader(system.connection);
  await reader.start();
  deadLetters = createDeadLetterReader({ reader, topics: Object.values(TOPICS) });
});

afterAll(async () => {
  await client?.stop();
  await reader?.stop();
  await system?.stop();
  await gate?.close();
});

const iso = (ms: number): string => new Date(ms).toISOString();

const message = (id: string, time: number, data: Record<string, unknown> = {}, clientId = "acme") =>
  handMade({
    kind: "message",
    client: clientId,
    id,
    time: iso(time),
    data: { _id: id, conversation_id: "c", date_created: iso(time), ...data },
  });

const send = async (
  events: readonly ReturnType<typeof message>[],
  topic: string = TOPICS.message,
): Promise<void> => {
  await system.producer.send(
    topic,
    events.map(({ key, value, headers }) => ({ key, value, headers })),
  );
  await system.caughtUp(20_000);
};

const ended = async <D, R>(type: JobType<D, R>, data: D): Promise<JobView> => {
  const { id } = await client.add(type, data);
  let last: JobView | undefined;
  for await (const view of client.follow(type.name, id, { everyMs: 100 })) last = view;
  if (last === undefined) throw new Error(`nothing is known of ${id}`);
  return last;
};

const resultOf = async <D, R>(type: JobType<D, R>, data: D): Promise<R> => {
  const view = await ended(type, data);
  expect(view.reason).toBeNull();
  return type.result.parse(view.result);
};

const deadLettersOf = async (reason: string): Promise<number[]> => {
  const replays: number[] = [];
  for await (const deadLetter of deadLetters.list(TOPICS.message, { reasons: [reason] }))
    replays.push(deadLetter.replays);
  return replays.sort((one, other) => one - other);
};

const readable = async (prefix: string): Promise<number> =>
  Number(await system.sql(`SELECT count() FROM messages FINAL WHERE startsWith(message_id, '${prefix}')`));

it("replays dead letters by reason, once, and lets a record that fails again not loop", async () => {
  const soon = Date.now() + 60_000;
  await send([message("early", soon), message("bad", Date.now() - 1_000, { conversation_id: 7 })]);
  expect(await deadLettersOf("time_in_future")).toEqual([0]);
  expect(await deadLettersOf("invalid_record")).toEqual([0]);
  let place: DeadLetter | undefined;
  for await (const deadLetter of deadLetters.list(TOPICS.message, { reasons: ["time_in_future"] }))
    place = deadLetter;
  await ingest.kill("SIGTERM");
  await system.service("ingest", { MAX_TIME_AHEAD_SECONDS: "100" });

  const dry = await resultOf(replayJob, { ...ALL, dryRun: true });
  expect(dry).toMatchObject({ dryRun: true, read: 2, replayed: 2 });
  expect(await deadLettersOf("invalid_record")).toEqual([0]);

  const first = await resultOf(replayJob, { ...ALL, reasons: ["time_in_future"] });
  expect(first.byReason).toEqual([{ topic: "messages", reason: "time_in_future", deadLetters: 1 }]);
  expect(first.skipped.notMatching).toBe(1);
  await until("the record is readable", 10_000, async () => (await readable("early")) === 1);
  // It has the version of its first arrival.
  const stored = await system.sql(
    "SELECT toString(version % pow(2, 48)::UInt128) FROM messages WHERE message_id = 'early'",
  );
  expect(Number(stored)).toBe(place?.arrival.offset);

  const replays = { ...ALL, reasons: ["invalid_record"] };
  for (const [round, before] of [[0], [0, 1], [0, 1, 2]].entries()) {
    const result = await resultOf(replayJob, replays);
    expect(result).toMatchObject({ replayed: 1, skipped: { replayedBefore: round } });
    const isRefused = async () => (await deadLettersOf("invalid_record")).length > before.length;
    await until("it is refused again", 10_000, isRefused);
  }
  expect(await deadLettersOf("invalid_record")).toEqual([0, 1, 2, 3]);
  expect(await resultOf(replayJob, replays)).toMatchObject({
    replayed: 0,
    skipped: { replayedBefore: 3, tooManyReplays: 1 },
  });
  const wrong = await ended(replayJob, { ...ALL, topic: "nothing" });
  expect(wrong).toMatchObject({ state: "failed", attempt: 1 });
  expect(wrong.reason).toContain("nothing is none of the topics");
  const one = { ...ALL, topic: "messages", place: place?.place ?? null };
  expect(await resultOf(replayJob, one)).toMatchObject({ read: 1, replayed: 0 });
  const early = "FROM messages FINAL WHERE message_id = 'early'";
  /** All but the stamp, which the text repeats. */
  const row = `SELECT * EXCEPT (uploaded_at, record),
    replaceRegexpOne(record, '"record_last_updated":"[^"]*"', '') ${early}`;
  const [before, uploaded] = [await system.sql(row), await system.sql(`SELECT uploaded_at ${early}`)];
  expect(await resultOf(replayJob, { ...one, again: true })).toMatchObject({ read: 1, replayed: 1 });
  const isStored = async () => (await system.sql(`SELECT uploaded_at ${early}`)) !== uploaded;
  await until("it is stored again", 10_000, isStored);
  expect(await system.sql(row)).toBe(before);
  expect(await readable("early")).toBe(1);
});

it("replays every dead letter once although the worker is killed twice", async () => {
  const count = bySize(600, 6_000);
  // Some MB, so that a replay has several steps; rejected events are rejected again.
  const body = "x".repeat(25_000);
  const arrivals = async (replays: number): Promise<number> => {
    const found = new Set<string>();
    for await (const deadLetter of deadLetters.list(TOPICS.message, { reasons: ["invalid_record"] }))
      if (deadLetter.replays === replays)
        found.add(`${deadLetter.arrival.partition}/${deadLetter.arrival.offset}`);
    return found.size;
  };
  const [sentBefore, replayedBefore] = [await arrivals(0), await arrivals(1)];
  await send(
    Array.from({ length: count }, (_, index) =>
      message(`many-${index}`, Date.now() - 1_000, {
        conversation_id: 7,
        message_data: { _type: "text", body },
      }),
    ),
  );
  expect(await arrivals(0)).toBe(sentBefore + count);
  const deadLettersEnd = async (): Promise<number> => {
    const bounds = await reader.bounds(`${TOPICS.message}.dead-letter`);
    return bounds.reduce((sum, { end }) => sum + end, 0);
  };
  const deadLettersBefore = await deadLettersEnd();
  const noted = async (): Promise<number> =>
    Number(
      await system.sql(
        "SELECT uniqExact(dead_letter_partition, dead_letter_offset) FROM replayed_dead_letters",
      ),
    );

  const before = await noted();
  const killAfterAStep = { nth: 1, side: "after" } as const;
  gate.arm(new Map([["note", killAfterAStep]]));
  const { id } = await client.add(replayJob, { ...ALL, reasons: ["invalid_record"] });
  for (let kill = 0; kill < 2; kill += 1) {
    await until("a step is done", 30_000, () => gate.caught().has("note"));
    await jobs.kill("SIGKILL");
    expect(await noted()).toBeLessThan(before + count);
    gate.arm(new Map(kill === 0 ? [["note", killAfterAStep]] : []));
    gate.release();
    await startJobs();
  }
  expect(await resultOfJob(client, replayJob, id)).toMatchObject({ replayed: count });
  expect(await noted()).toBe(before + count);
  await until("all came again", 30_000, async () => {
    // Reading all dead letters is slow, so this is checked first.
    if ((await deadLettersEnd()) < deadLettersBefore + count) return false;
    return (await arrivals(1)) === replayedBefore + count;
  });
});

it("finds what is on the bus and not readable, and tells apart what explains it", async () => {
  const from = iso(Date.now() - 60_000);
  const recent = Date.now() - 1_000;
  const old = Date.now() - 400 * 86_400_000;
  const sessions = createSessions();
  const clients = createClientStore({
    session: sessions.open(system.stack.clickhouse.url("migrator")),
    now: Date.now,
  });
  await clients.saveClient({
    clientId: "forgetful",
    linkBounds: null,
    rateLimits: {},
    retentionDays: 365,
    deleted: false,
    createdAt: iso(Date.now()),
  });
  await send([
    message("kept", recent, {}, "globex"),
    message("lost", recent, {}, "globex"),
    message("future", Date.now() + 200_000, {}, "globex"),
    message("ancient", old, {}, "forgetful"),
    message("young", Date.now() - 1_000, {}, "forgetful"),
  ]);
  const window = { from, to: iso(Date.now()), clientId: null };
  const fine = await resultOf(reconcileJob, window);
  expect(fine.missing).toBe(0);

  // Retention leaves what came shortly before it.
  for (const [table, came] of [
    ["messages", "uploaded_at"],
    ["landing", "uploaded_at"],
    ["changes", "stored_at"],
  ]) {
    await system.sql(`INSERT INTO ${table} SELECT * REPLACE (${came} - INTERVAL 1 HOUR AS ${came}) FROM ${table}
      WHERE client_id = 'forgetful' SETTINGS log_comment = 'stamped'`);
    await system.sql(`ALTER TABLE ${table} DELETE WHERE client_id = 'forgetful'
      AND ${came} > now64(6) - INTERVAL 30 MINUTE SETTINGS mutations_sync = 2`);
  }

  const retained = await resultOf(retentionJob, { clientId: null, dryRun: true });
  const erased = await resultOf(retentionJob, { clientId: null, dryRun: false });
  const rows = [
    ["messages", 1],
    ["landing", 1],
    ["changes", 1],
  ];
  for (const { tables } of [retained, erased]) {
    expect(tables.filter((one) => one.rows > 0).map((one) => [one.table, one.rows])).toEqual(rows);
  }
  expect(await readable("ancient")).toBe(0);
  expect(await readable("young")).toBe(1);

  const reported = await resultOf(reconcileJob, { ...window, clientId: "globex" });
  expect(reported.hours.flatMap(({ clients }) => clients)).toContainEqual({
    clientId: "globex",
    readable: 2,
    missing: 0,
    deadLetters: 1,
    suppressed: 0,
    erasedButReadable: 0,
    expired: 0,
  });
  const forgotten = await resultOf(reconcileJob, { ...window, clientId: "forgetful" });
  expect(forgotten.hours.flatMap(({ clients }) => clients)).toContainEqual(
    expect.objectContaining({ clientId: "forgetful", readable: 1, expired: 1, missing: 0 }),
  );

  await system.sql("DELETE FROM messages WHERE message_id = 'lost'");
  const store = createReconcileStore({
    session: sessions.open(system.stack.clickhouse.url("jobs"), topologyOf(system.stack)),
    now: Date.now,
    holder: "test",
  });
  const version = { exportedAt: 0, partition: 0, offset: 0 };
  const exports = ["kept", "lost"].flatMap((id) =>
    [recent, recent + 1].map((ms) => ({ clientId: "globex", id, dateCreated: ms * 1000, version })),
  );
  expect(await store.present("message.exported", exports)).toEqual([true, false, false, false]);
  for (const type of ["conversation.exported", "end_user.exported"] as const)
    expect(await store.present(type, exports.slice(0, 1)), type).toEqual([false]);
  await sessions.close();
  const failed = await ended(reconcileJob, window);
  expect(failed).toMatchObject({ state: "failed", attempt: 1 });
  expect(failed.reason).toMatch(
    / 1 exports of .* are not readable, such as messages\/\d+\/\d+ \(globex, messages\)$/,
  );
  expect(await system.sql("SELECT count() FROM job_keys")).toBe("0");
  const missing = { topic: "messages", fate: "missing" };
  expect(await readMetric(jobs.metricsUrl, "conversation_export_reconciled_messages_total", missing)).toBe(1);
  await send([message("lost", Date.now() - 1_000, {}, "globex")]);
  expect((await resultOf(reconcileJob, window)).missing).toBe(0);
});

it("finds a record that lacks its place in a list, a handoff, or its entry of changes", async () => {
  const from = iso(Date.now() - 60_000);
  const created = Date.now() - 1_000;
  const exported = (id: string, step: number, data: Record<string, unknown> = {}) =>
    handMade({
      kind: "conversation",
      client: "initech",
      id,
      time: iso(created + step),
      data: { _id: id, date_created: iso(created), date_updated: iso(created + step), ...data },
    });
  const handoff = (target: string) => ({ id: `${target}-1`, handoff_id: target, date_created: iso(created) });
  const other = iso(created - 40 * 86_400_000);
  await send(
    ["whole", "unlisted", "alone"].flatMap((id) => [
      exported(id, 1, { handoffs: [handoff("desk")] }),
      exported(id, 2, { handoffs: [handoff("sales")] }),
      exported(id, 3, { date_created: other }),
    ]),
    TOPICS.conversation,
  );
  await send([message("dated", created, {}, "initech"), message("untold", created, {}, "initech")]);
  const window = { from, to: iso(Date.now()), clientId: "initech" };
  expect((await resultOf(reconcileJob, window)).missing).toBe(0);
  // A superseded entry is no loss.
  const isLatest = `date_updated = fromUnixTimestamp64Milli(${created + 3}, 'UTC')`;
  await system.sql(`DELETE FROM conversation_updates WHERE client_id = 'initech' AND NOT ${isLatest}`);
  expect((await resultOf(reconcileJob, window)).missing).toBe(0);

  // Nor is one whose date a backfill corrected: two rows of one version.
  const corrected = "* REPLACE (date_updated + toIntervalHour(1) AS date_updated, now64(6) AS uploaded_at)";
  for (const table of ["conversations", "conversation_updates"])
    await system.sql(`INSERT INTO ${table} SELECT ${corrected} FROM ${table} AS t
      WHERE conversation_id = 'whole' AND t.${isLatest}`);
  await system.sql(`INSERT INTO changes (client_id, kind, stored_at, id, date_created)
    SELECT client_id, 'conversation', uploaded_at, conversation_id, date_created FROM conversations
    WHERE conversation_id = 'whole' SETTINGS log_comment = 'stamped'`);
  await system.sql(`DELETE FROM conversation_updates WHERE conversation_id = 'whole' AND ${isLatest}`);
  expect((await resultOf(reconcileJob, window)).missing).toBe(0);

  await system.sql(`DELETE FROM conversation_updates WHERE conversation_id = 'unlisted' AND ${isLatest}`);
  await system.sql("DELETE FROM handoffs WHERE conversation_id = 'alone' AND target = 'desk'");
  await system.sql("DELETE FROM record_dates WHERE endsWith(record, '/dated')");
  await system.sql("DELETE FROM changes WHERE id = 'untold'");
  // The entry of a deletion says nothing of a row.
  await system.sql(`INSERT INTO changes SELECT client_id, 'message', uploaded_at, message_id, date_created, true
    FROM messages WHERE message_id = 'untold' SETTINGS log_comment = 'stamped'`);
  const failed = await ended(reconcileJob, window);
  expect(failed).toMatchObject({ state: "failed", attempt: 1 });
  expect(failed.reason).toMatch(
    / 6 exports of .* are not readable, such as .*\(initech, conversation_updates\).*\(initech, handoffs\)/,
  );
  const reported = await readMetric(jobs.metricsUrl, "conversation_export_reconciled_messages_total", {
    topic: TOPICS.conversation,
    fate: "missing",
  });
  expect(reported).toBe(4);
});
