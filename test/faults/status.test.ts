import { connect } from "node:net";
import {
  type Admin,
  type Consumer,
  createAdmin,
  createConsumer,
  createProducer,
} from "@conversation-export/bus";
import {
  createJobClient,
  createJobWorkers,
  reconcileJob,
  replayJob,
  runJob,
  windowsJob,
} from "@conversation-export/queue";
import { createLogger, createMetrics, ServiceError } from "@conversation-export/runtime";
import {
  createRequestStore,
  createSession,
  createWatermarkStore,
  type WatermarkStore,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningOps, startOps } from "../system/ops.ts";
import { redisCommand } from "../system/redis-command.ts";
import { GROUP } from "../system/system.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

const log = createLogger({ service: "test", level: "silent" });
const SECRET = "0123456789abcdef0123456789abcdef";
const LISTS = ["conversations", "messages", "end_users"] as const;

type Look = {
  readonly lag: { topic: string; lag: number | null }[] | null;
  readonly dead_letters: { topic: string }[] | null;
  readonly watermark_age_seconds: Record<string, number | null> | null;
  readonly windows: object | null;
  readonly erasures: object | null;
  readonly queues: { queue: string; waiting: number; oldest_waiting_since: string | null }[] | null;
  readonly processes: object | null;
  readonly versions: Record<string, unknown>;
  readonly marks: { alert: string; runbook: string; found: string }[];
  readonly failed: { parts: string[]; reason: string }[];
};

let stack: TestStack;
let admin: Admin;
let member: Consumer;
let watermarks: WatermarkStore;
const stops: (() => Promise<unknown>)[] = [];

/** With the rights that `grants` and `grants --redis` print for operators. */
const start = (...words: string[]): RunningOps => {
  const env = {
    OPERATOR: "jane@example.com",
    CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
    KAFKA_BROKERS: stack.kafka.brokers.join(","),
    REDIS_URL: stack.redis.urlOf("ops"),
  };
  return startOps(env, ...words);
};

const look = async (): Promise<{ readonly code: number; readonly look: Look }> => {
  const { code, stdout, stderr } = await start("status", "--json").ended;
  expect(stderr).toBe("");
  return { code, look: JSON.parse(stdout) as Look };
};
const alertsOf = ({ marks }: Look): string[] => marks.map(({ alert }) => alert);

const send = async (topic: string, count: number): Promise<void> => {
  const producer = createProducer({ brokers: stack.kafka.brokers, clientId: "test", log });
  await producer.start();
  try {
    const one = { key: null, value: Buffer.from("{}"), headers: {} };
    await producer.send(
      topic,
      Array.from({ length: count }, () => one),
    );
  } finally {
    await producer.stop();
  }
};

const monitorRedis = async (url: string) => {
  const { hostname: host, port } = new URL(url);
  const known = await redisCommand(url, "CLIENT LIST");
  const socket = connect({ host, port: Number(port) });
  let seen = "";
  socket.setEncoding("utf8").on("data", (text: string) => (seen += text));
  socket.write("MONITOR\r\n");
  await until("it watches", 10_000, () => seen.startsWith("+OK"));
  return {
    end: () => void socket.destroy(),
    commands: (): string[] =>
      [...seen.matchAll(/^\+\d+\.\d+ \[\d+ ([\d.:]+)\] (.*?)\r?$/gm)].flatMap(
        ([, from = "", command = ""]) => (known.includes(`addr=${from} `) ? [] : [command]),
      ),
  };
};

const freshWatermarks = async (): Promise<void> => {
  for (const list of LISTS) await watermarks.save(list, (Date.now() - 1_000) * 1_000);
};

beforeAll(async () => {
  stack = await startTestStack();
  await Promise.all([start("migrate").ended, start("topics", "create", "--partitions", "1").ended]);
  admin = createAdmin({ brokers: stack.kafka.brokers, clientId: "test", log });
  await admin.start();
  const writer = createSession({ url: stack.clickhouse.url("writer"), application: "test" });
  watermarks = createWatermarkStore({ session: writer });
  member = createConsumer({
    brokers: stack.kafka.brokers,
    clientId: "test",
    log,
    groupId: GROUP,
    topics: ["conversations", "messages", "end-users"],
    onMessages: () => "continue",
    onAssigned: () => undefined,
    onRebalancing: () => undefined,
    onCrash: () => undefined,
  });
  await member.start();
  await until("it is in the group", 30_000, () => member.isJoined());
  const workers = createJobWorkers({
    url: stack.redis.url,
    lockMs: 5_000,
    stopWithinMs: 2_000,
    metrics: createMetrics({ service: "test" }),
    log,
    jobs: [
      runJob({ type: windowsJob, run: () => Promise.reject(new ServiceError("never", "not asked for")) }),
      runJob({
        type: reconcileJob,
        run: () => Promise.reject(new ServiceError("records_missing", "3 records are missing")),
      }),
    ],
    onFatal: () => undefined,
  });
  await workers.start();
  stops.push(
    admin.stop,
    () => writer.close(),
    workers.stop,
    () => member.stop(),
  );
});

afterAll(async () => {
  for (const stop of stops.toReversed()) await stop().catch(() => undefined);
  await stack?.stop();
});

it("shows that everything is fine", async () => {
  await freshWatermarks();
  const { code, look: seen } = await look();
  expect(seen.failed).toEqual([]);
  expect(seen.marks).toEqual([]);
  expect(code).toBe(0);
  expect(seen).toMatchObject({
    dead_letters: [
      { topic: "conversations", kept: 0, last_hour: 0, not_replayed: 0 },
      { topic: "messages", kept: 0 },
      { topic: "end-users", kept: 0 },
    ],
    windows: { open: 0, closed: 0 },
    erasures: { open: 0, awaiting_approval: 0, overdue: 0, oldest_received_at: null },
    processes: { ingest: 1, jobs: 1 },
    versions: { kafka_brokers: 1, migrations: { pending: [], changed: [], later: [] } },
  });
  expect(seen.versions["clickhouse"]).toMatch(/^\d+\.\d+/);
  expect(seen.versions["redis"]).toMatch(/^\d+\.\d+/);
  const shown = await start("status").ended;
  expect(shown.code).toBe(0);
  expect(shown.stdout).toContain("no alert would fire");
  expect(shown.stdout.split("\n").length).toBeLessThan(30);
});

it("reads no more with more records", async () => {
  const cost = async () => {
    const sql = "SELECT sum(value) FROM system.events WHERE event IN ('SelectedRows', 'SelectedMarks')";
    return Number(await runSql(stack.clickhouse.url("migrator"), sql));
  };
  const costOfLook = async (): Promise<number> => {
    const before = await cost();
    await look();
    return (await cost()) - before;
  };
  const first = await costOfLook();
  await runSql(
    stack.clickhouse.url("migrator"),
    `INSERT INTO messages (client_id, message_id, date_created, uploaded_at, sender)
      SELECT 'acme', toString(number), '2026-10-04', now64(6), 'x' FROM numbers(300000)`,
  );
  expect(Math.abs((await costOfLook()) - first)).toBeLessThan(2_000);
});

it("marks a lagging group without members, an old watermark, dead letters, a failed job and an erasure that waits", async () => {
  await member.stop();
  await send("messages", 10_010);
  await admin.setCommitted(GROUP, [{ topic: "messages", partition: 0, offset: 3 }]);
  await send("messages.dead-letter", 3);
  const sql = (text: string) => runSql(stack.clickhouse.url("migrator"), text);
  const id = await admin.fetchTopicId("messages.dead-letter");
  // The second was a dead letter of a topic that was deleted and recreated.
  await sql(`INSERT INTO replayed_dead_letters
    (topic, partition, offset, dead_letter_partition, dead_letter_offset, dead_letter_topic_id, replayed_at)
    VALUES ('messages', 0, 8, 0, 1, '${id}', now64(3)), ('messages', 0, 9, 0, 2, 'former', now64(3)),
      ('conversations', 0, 8, 0, 1, '${id}', now64(3))`);
  await sql("TRUNCATE TABLE watermarks");
  for (const list of LISTS) await watermarks.save(list, (Date.now() - 400_000) * 1_000);
  await sql(`INSERT INTO upload_windows (seconds, window_start, table, version, state)
    SELECT 3600, toDateTime('2026-10-01 00:00:00', 'UTC') + INTERVAL number HOUR, 'messages', 1, 'closed' FROM numbers(31)`);

  const jobs = createJobClient({ url: stack.redis.urlOf("jobs"), log });
  const intake = createSession({ url: stack.clickhouse.url("intake"), application: "test" });
  try {
    await jobs.start();
    const { id } = await jobs.add(reconcileJob, reconcileJob.data.parse({}));
    await until("it failed", 20_000, async () => (await jobs.get("reconcile", id))?.state === "failed");
    await jobs.add(replayJob, replayJob.data.parse({ dryRun: true }));
    const requests = createRequestStore({ session: intake, now: Date.now, idSecret: SECRET });
    const subject = { email: null, identifiers: [{ type: "chatter_id" as const, value: "x" }] };
    const { requestId } = await requests.open("acme", subject);
    await requests.setStatus("acme", requestId, "awaiting_approval");
  } finally {
    await Promise.all([jobs.stop(), intake.close()]);
  }

  const { code, look: seen } = await look();
  expect(code).toBe(0);
  expect(seen.lag?.find(({ topic }) => topic === "messages")?.lag).toBe(10_007);
  expect(seen.dead_letters?.[1]).toEqual({ topic: "messages", kept: 3, last_hour: 3, not_replayed: 2 });
  expect(seen.watermark_age_seconds?.["messages"]).toBeGreaterThan(390);
  expect(seen.windows).toMatchObject({ closed: 31 });
  expect(seen.erasures).toMatchObject({ open: 1, awaiting_approval: 1, overdue: 0 });
  const replay = seen.queues?.find(({ queue }) => queue === "replay");
  expect(replay?.waiting).toBe(1);
  expect(Date.now() - Date.parse(replay?.oldest_waiting_since ?? "")).toBeLessThan(60_000);
  expect(seen.queues).toContainEqual(
    expect.objectContaining({ queue: "reconcile", failed: 1, failed_last_hour: 1 }),
  );
  expect(alertsOf(seen)).toEqual([
    "IngestLag",
    "WatermarkOld",
    "WatermarkOld",
    "WatermarkOld",
    "DeadLetters",
    "UploadWindowsOverdue",
    "ErasureAwaitsApproval",
    "JobFailed",
    "ComponentDown",
  ]);
  expect(seen.processes).toEqual({ ingest: 0, jobs: 1 });
  expect(seen.marks[0]?.runbook).toBe("docs/runbooks/IngestLag.md");
});

it("asks Redis for numbers, and for no job's data", async () => {
  const watched = await monitorRedis(stack.redis.url);
  try {
    expect((await look()).look.queues).toContainEqual(
      expect.objectContaining({ queue: "replay", waiting: 1 }),
    );
  } finally {
    watched.end();
  }
  const mine = watched.commands();
  const ofJobs = mine.filter((command) => /"conversation-export:\w+:replay-\w+/.test(command));
  expect(ofJobs).toEqual([expect.stringMatching(/^"hmget" "\S+" "timestamp" "opts" "processedOn"$/)]);
  expect(mine.filter((command) => !/^"(hello|auth|client|info|select)"/i.test(command)).length).toBeLessThan(
    90,
  );
  expect(mine.filter((command) => /^"(keys|scan|hgetall|hscan|smembers)"/i.test(command))).toEqual([]);
});

it("watches with the connections of the first look until it is ended", async () => {
  const looks = 3;
  const run = start("status", "--watch", "--every", "7", "--json");
  const seen = (): Look[] =>
    run
      .stdout()
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Look]));
  await until("the first look", 30_000, () => seen().length >= 1);
  const sockets = run.sockets.length;
  await until("more looks", 60_000, () => seen().length >= looks);
  expect(sockets).toBeGreaterThan(0);
  expect(run.sockets).toHaveLength(sockets);
  run.interrupt();
  expect(await run.ended).toMatchObject({ code: 0, stderr: "" });
  await until("all are closed", 10_000, () => run.sockets.every(({ destroyed }) => destroyed));
  expect(seen().flatMap(({ failed }) => failed)).toEqual([]);
});

it("reports each server that is away, beside what the others say, and its return", async () => {
  const run = start("status", "--watch", "--every", "1", "--json");
  const last = (): Look | null => {
    const line = run.stdout().split("\n").at(-2);
    return line === undefined ? null : (JSON.parse(line) as Look);
  };
  const failing = () => last()?.failed.map(({ parts }) => parts.join());
  const awaits = (...parts: string[]) =>
    until(`away: ${parts.join("; ")}`, 90_000, () => JSON.stringify(failing()) === JSON.stringify(parts));
  try {
    await awaits();
    await stack.redis.stop();
    await awaits("queues,held schedules,processes");
    expect(last()?.failed[0]?.reason).toContain("Redis does not answer at");
    expect(alertsOf(last() as Look)).toContain("RedisAway");
    expect(last()).toMatchObject({ queues: null, windows: { closed: 31 } });
    await stack.redis.start();
    await awaits();

    await stack.clickhouse.stop();
    await awaits("watermarks,windows,erasures,tables,clients");
    expect(last()?.failed[0]?.reason).toContain("ClickHouse does not answer at");
    expect(last()?.dead_letters?.[1]).toEqual({
      topic: "messages",
      kept: 3,
      last_hour: 3,
      not_replayed: null,
    });
    await stack.clickhouse.start();
    await awaits();

    await stack.kafka.stop();
    await until(
      "Kafka is away",
      90_000,
      () => last()?.lag === null && last()?.versions["kafka_brokers"] === null,
    );
    expect(last()?.erasures).toMatchObject({ open: 1 });
    expect(last()?.failed[0]?.reason).toContain("Kafka");
  } finally {
    run.interrupt();
  }
  expect(await run.ended).toMatchObject({ code: 3 });
  const once = await look();
  expect(once.code).toBe(3);
  expect(once.look.failed).toMatchObject([
    {
      parts: ["lag", "dead letters", "brokers"],
      reason: expect.stringContaining("Kafka does not answer at"),
    },
  ]);
});
