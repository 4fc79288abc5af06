import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createProducer } from "@conversation-export/bus";
import { tied } from "@conversation-export/local-stack";
import { byRecordTable } from "@conversation-export/domain";
import {
  type BackfillData,
  backfillCountsSchema,
  backfillJob,
  createJobWorkers,
  erasureJob,
  type JobWorkers,
  reconcileJob,
  retentionJob,
  runJob,
  runSplitJob,
  type WindowsData,
  windowsJob,
} from "@conversation-export/queue";
import { createLogger, createMetrics, ServiceError } from "@conversation-export/runtime";
import { createRequestStore, createSession } from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpsEnding, type RunningOps, startOps } from "../system/ops.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { whileStopped } from "../system/while-stopped.ts";

const projectFolder = join(import.meta.dirname, "..", "..");
const main = join(projectFolder, "services", "ops", "src", "main.ts");
const log = createLogger({ service: "test", level: "silent" });
const idSecret = "0123456789abcdef0123456789abcdef";

let stack: TestStack;
let workers: JobWorkers | undefined;
const gate = Promise.withResolvers<void>();
const asked: { readonly backfills: BackfillData[]; readonly windows: WindowsData[] } = {
  backfills: [],
  windows: [],
};
const erased: { clientId: string | null; requestId: string | null }[] = [];

const variables = () => ({
  OPERATOR: "jane@example.com",
  CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
  CLICKHOUSE_WRITER_URL: stack.clickhouse.url("writer"),
  CLICKHOUSE_READER_URL: stack.clickhouse.url("reader"),
  CLICKHOUSE_LOOKUP_URL: stack.clickhouse.url("lookup"),
  CLICKHOUSE_INTAKE_URL: stack.clickhouse.url("intake"),
  CLICKHOUSE_JOBS_URL: stack.clickhouse.url("jobs"),
  CLICKHOUSE_ANALYST_URL: stack.clickhouse.url("analyst"),
  KAFKA_BROKERS: stack.kafka.brokers.join(","),
  REDIS_URL: stack.redis.url,
  CURSOR_SECRET: idSecret,
  SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
});

const start = (words: readonly string[], env: Readonly<Record<string, string>> = {}): RunningOps =>
  startOps({ ...variables(), ...env }, ...words);
const startProcess = (words: readonly string[], input = "") => {
  const [program, ...args] = tied([process.execPath, main, ...words]);
  const child = spawn(program, args, {
    env: { NODE_COMPILE_CACHE: join(projectFolder, ".cache", "compile"), ...variables() },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.end(input);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return {
    stderr: () => stderr,
    interrupt: () => void child.kill("SIGINT"),
    ended: once(child, "close").then(([code]: unknown[]) => ({ code, stdout, stderr })),
  };
};
const ops = (...words: string[]): Promise<OpsEnding> => start(words).ended;
const jsonOf = async (...words: string[]): Promise<unknown> =>
  JSON.parse((await ops(...words, "--json")).stdout) as unknown;

const NO_ROWS = byRecordTable(() => 0);
const startWorkers = async (): Promise<void> => {
  workers = createJobWorkers({
    url: stack.redis.url,
    lockMs: 5_000,
    stopWithinMs: 2_000,
    metrics: createMetrics({ service: "test" }),
    log,
    jobs: [
      runJob({
        type: retentionJob,
        run: async ({ signal, progress, data }) => {
          await progress({ done: 1_500, total: 6_000, unit: "rows" });
          const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          await Promise.race([gate.promise, aborted]);
          signal.throwIfAborted();
          return { dryRun: data.dryRun, clients: [], tables: [] };
        },
      }),
      runJob({
        type: reconcileJob,
        run: () => Promise.reject(new ServiceError("records_missing", "3 records are missing")),
      }),
      runSplitJob({
        type: backfillJob,
        part: backfillCountsSchema,
        partResult: backfillCountsSchema,
        split: ({ data }) => {
          asked.backfills.push(data);
          return Promise.resolve([]);
        },
        runPart: () => Promise.reject(new Error("there is none")),
        finish: ({ data: { dryRun, window } }) =>
          Promise.resolve({
            events: { read: 0, suppressed: 0, rejected: 0, ignored: 0 },
            records: { examined: 0, different: 0 },
            rows: { inserted: NO_ROWS, deleted: NO_ROWS, undeletable: NO_ROWS },
            problems: [],
            dryRun,
            parts: 0,
            deletableSince: null,
            uncovered: window === null ? null : { before: "2026-11-01T12:00:00Z", records: 7 },
          }),
      }),
      runJob({
        type: windowsJob,
        run: ({ data }) => {
          asked.windows.push(data);
          return Promise.resolve({ counted: 0, opened: 0, closed: 0, reopened: 0 });
        },
      }),
      runJob({
        type: erasureJob,
        run: ({ data }) => {
          erased.push(data);
          const found = { conversations: 1, messages: 2, end_users: 0 };
          return Promise.resolve({
            hidden: 1,
            requests: 1,
            held: 0,
            found,
            deleted: { messages: 2 },
            rounds: 1,
          });
        },
      }),
    ],
    onFatal: () => undefined,
  });
  await workers.start();
};

beforeAll(async () => {
  stack = await startTestStack();
  await Promise.all([ops("migrate"), ops("topics", "create", "--partitions", "1")]);
  await ops("clients", "create", "acme");
});

afterAll(async () => {
  await workers?.stop();
  await stack?.stop();
});

describe("doctor", () => {
  it("finds an installation right, but for the services that do not run", async () => {
    const { code, stdout } = await ops("doctor");
    expect(stdout).not.toMatch(/^(problem|away|skipped)/m);
    expect(stdout).toMatch(/^warning +Redis +jobs processes +none is connected$/m);
    expect(stdout).toMatch(/^ok +ClickHouse +user jobs +has what it needs/m);
    expect(stdout).toMatch(/^ok +ClickHouse +user migrator +has what it needs$/m);
    expect(stdout).toMatch(/^ok +ClickHouse +user analyst +has what it needs/m);
    expect(stdout).toMatch(/^ok +ClickHouse +views +those for analysts/m);
    expect(stdout).toMatch(/^ok +ClickHouse +quota of reader +each client has its own$/m);
    expect(stdout).toMatch(/^warning +Redis +schedules/m);
    expect(stdout).toMatch(/^ok +Redis +redis_other +0 jobs processes use this one$/m);
    expect(stdout).toMatch(
      /^warning +Kafka +ingest +no process is in the group conversation-export-ingest$/m,
    );
    expect(code).toBe(0);
  });

  it("names another Redis that a jobs process uses", async () => {
    const sql = (text: string) => runSql(stack.clickhouse.url("jobs"), text);
    await sql(
      `INSERT INTO coordination SELECT 'jobs one 00000000-another', toUnixTimestamp64Micro(now64(6)), 0`,
    );
    const { code, stdout } = await ops("doctor");
    expect(stdout).toMatch(/^problem +Redis +redis_other +0 .+ use \S+ at \S+, 1 .+ uses 00000000-another$/m);
    expect(code).toBe(1);
    await runSql(stack.clickhouse.url("migrator"), "TRUNCATE TABLE coordination");
    expect((await ops("doctor")).code).toBe(0);
  });

  it("says what is wrong with users and topics, and what to do", async () => {
    const { code, stdout } = await start(["doctor", "--json"], {
      CLICKHOUSE_READER_URL: stack.clickhouse.url("writer"),
      CLICKHOUSE_JOBS_URL: stack.clickhouse.url("reader"),
      CLICKHOUSE_ANALYST_URL: stack.clickhouse.url("reader"),
      TOPIC_MESSAGES: "chat.messages",
    }).ended;
    expect(code).toBe(1);
    const findings = JSON.parse(stdout) as { name: string; state: string; found: string; advice: string }[];
    const problems = findings.filter(({ state }) => state === "problem");
    expect(problems).toMatchObject([
      { name: "user reader", found: expect.stringContaining("lacks SELECT on") },
      { name: "user reader", found: expect.stringMatching(/^must not have .*INSERT on/) },
      { name: "user reader", advice: expect.stringContaining("readonly = 2") },
      { name: "user jobs", found: expect.stringContaining("ALTER DELETE") },
      { name: "user analyst", found: expect.stringContaining("_analytics.conversations") },
      { name: "user analyst", found: expect.stringContaining("must not have SELECT on") },
      { name: "topics", advice: expect.stringContaining("topics create") },
    ]);
    expect(problems[6]?.found).toContain("chat.messages, chat.messages.dead-letter");
  });
});

describe("a Redis that answers and takes no writes", () => {
  it.each([
    ["maxmemory", "1", "0", /OOM command not allowed/, "raise maxmemory"],
    ["min-replicas-to-write", "3", "0", /NOREPLICAS Not enough good replicas/, "bring them back"],
  ])("for its %s is quoted by doctor, status and commands", async (setting, full, free, words, advice) => {
    const set = (value: string) => redisCommand(stack.redis.url, `CONFIG SET ${setting} ${value}`);
    expect(await set(full)).toBe("+OK");
    try {
      const [doctor, status, retention] = await Promise.all([
        ops("doctor", "--json"),
        ops("status", "--json"),
        ops("retention", "--detach", "--yes"),
      ]);
      const findings = (JSON.parse(doctor.stdout) as { area: string }[]).filter(
        ({ area }) => area === "Redis",
      );
      const said = expect.stringMatching(words) as string;
      const refused = { state: "problem", name: "server", found: said };
      expect(findings).toMatchObject([{ ...refused, advice: expect.stringContaining(advice) }]);
      expect(doctor.code).toBe(1);
      const { failed, marks } = JSON.parse(status.stdout) as Record<"failed" | "marks", unknown[]>;
      expect(failed).toMatchObject([{ reason: said }]);
      expect(marks).toContainEqual(expect.objectContaining({ alert: "RedisAway" }));
      expect(retention).toMatchObject({ code: 1, stderr: said });
      expect(retention.stderr).toContain(`Redis refuses writes at ${new URL(stack.redis.url).host} (`);
    } finally {
      expect(await set(free)).toBe("+OK");
    }
  });
});

/** A server that accepts connections but never answers counts as down. */
const expectHungClickhouse = async (): Promise<void> => {
  const text = `ClickHouse does not answer at 127.0.0.1:${stack.clickhouse.port} (TimeoutError)`;
  const advice = "check CLICKHOUSE_URL and that the server runs";
  await whileStopped(stack.clickhouse, async () => {
    const begun = performance.now();
    const [list, migrated, doctor] = await Promise.all([
      ops("clients", "list"),
      ops("migrate"),
      ops("doctor", "--json"),
    ]);
    expect(performance.now() - begun).toBeLessThan(30_000);
    for (const ending of [list, migrated])
      expect(ending).toEqual({ code: 3, stdout: "", stderr: `export-ops: ${text}: ${advice}\n` });
    expect(doctor.code).toBe(3);
    expect(JSON.parse(doctor.stdout)).toContainEqual({
      area: "ClickHouse",
      name: "server",
      state: "away",
      found: text,
      advice,
    });
  });
};

describe("jobs", () => {
  it("wait for a worker, are followed, left alone with Ctrl-C, and cancelled", async () => {
    const followed = startProcess(["retention", "--yes", "--json"]);
    await until("it waits", 10_000, () => followed.stderr().includes("waits for a worker"));
    await expectHungClickhouse();
    await until("it says why", 20_000, () => followed.stderr().includes("no jobs process is connected"));
    await stack.redis.kill();
    await until("it says so", 5_000, () => /Redis does not answer.* until 2/.test(followed.stderr()));
    await stack.redis.start();
    await until("it goes on", 10_000, () => followed.stderr().includes("Redis is back"));
    await startWorkers();
    await until("it runs", 10_000, () => followed.stderr().includes("25 %, 1,500 of 6,000 rows"));
    followed.interrupt();
    expect(await followed.ended).toMatchObject({ code: 130, stdout: "" });
    const [, id = ""] = /export-ops jobs follow (\S+?)`/.exec(followed.stderr()) ?? [];

    expect(await jsonOf("jobs", "show", id)).toMatchObject({ id, queue: "retention", state: "active" });
    expect((await ops("jobs", "cancel", id, "--yes")).code).toBe(0);
    const [noted] = (await jsonOf("audit", "--limit", "1")) as [unknown];
    expect(noted).toMatchObject({
      command: "jobs cancel",
      arguments: { arguments: [id], queue: "retention" },
      state: "done",
    });
    const cancelled = await ops("jobs", "follow", id);
    expect(cancelled).toMatchObject({ code: 1, stderr: expect.stringContaining(`${id} was cancelled`) });

    gate.resolve();
    expect((await ops("jobs", "retry", id)).code).toBe(0);
    const { id: another } = (await jsonOf("retention", "--dry-run", "--detach")) as { id: string };
    expect(another).not.toBe(id);
    expect(await ops("jobs", "follow", id)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^dry run +no$/m),
    });
    expect((await ops("jobs", "retry", id)).stderr).toContain("is done");
    const [list, unknown] = await Promise.all([
      ops("jobs", "list", "--queue", "retention"),
      ops("jobs", "show", "nothing"),
    ]);
    expect(list.stdout).toContain(id);
    expect(list.stdout).toContain(another);
    expect(unknown.stderr).toContain("there is no job nothing");
  });

  it("are added for a client that is not registered, with a warning", async () => {
    const words = ["backfill", "--dry-run", "--detach", "--json", "--client"];
    const [nobody, acme] = await Promise.all([ops(...words, "nobody"), ops(...words, "acme")]);
    expect(nobody).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("no client nobody is registered"),
    });
    expect(JSON.parse(nobody.stdout)).toMatchObject({ queue: "backfill" });
    expect(acme).toMatchObject({ code: 0, stderr: "" });
  });

  it("end with 4 when landing does not hold all of a window to backfill", async () => {
    const words = ["backfill", "--client", "acme", "--yes"];
    expect(await ops(...words)).toMatchObject({ code: 0, stderr: expect.not.stringContaining("landing") });
    const partly = await ops(...words, "--since", "2026-11-01", "--until", "2026-11-02");
    expect(partly).toMatchObject({ code: 4, stderr: expect.stringContaining("7 records") });
    expect(partly.stdout).not.toBe("");
  });

  it("wait for ingest when it lags by more than 10,000, unless the command names another limit", async () => {
    const words = ["backfill", "--client", "acme", "--dry-run"];
    const begun = asked.backfills.length;
    for (const more of [[], ["--max-lag", "7", "--rate", "50"], ["--max-lag", "0"]])
      expect((await ops(...words, ...more)).code).toBe(0);
    expect(asked.backfills.slice(begun)).toMatchObject([
      { maxLag: 10_000, rowsPerSecond: null },
      { maxLag: 7, rowsPerSecond: 50 },
      { maxLag: null, rowsPerSecond: null },
    ]);
  });

  it("count the windows again before they are shown, older ones from an instant on", async () => {
    for (const more of [[], ["--since", "2026-10-01"]])
      expect((await ops("windows", "--recount", ...more)).code).toBe(0);
    expect(asked.windows).toEqual([{ since: null }, { since: "2026-10-01T00:00:00.000000Z" }]);
    await ops("windows");
    expect(asked.windows).toHaveLength(2);
  });

  it("end with 1 and their reason when they fail", async () => {
    const failed = await ops("reconcile", "--json");
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("3 records are missing") });
    expect(JSON.parse(failed.stdout)).toMatchObject({ state: "failed", queue: "reconcile" });
    const { id } = JSON.parse(failed.stdout) as { id: string };
    expect(await jsonOf("jobs", "remove", id, "--yes")).toEqual({ id, queue: "reconcile", removed: true });
    expect((await ops("jobs", "show", id)).stderr).toContain(`there is no job ${id}`);
  });
});

describe("erase", () => {
  it("makes a request as the export API would, and goes on with it by its id", async () => {
    const session = createSession({ url: stack.clickhouse.url("intake"), application: "test" });
    const requests = createRequestStore({ session, now: Date.now, idSecret });
    try {
      const done = await ops("erase", "--client", "acme", "--email", "Jane@Example.com", "--yes");
      expect(done.code).toBe(0);
      const [, id = ""] = /([0-9a-f]{32}-\d{10})/.exec(done.stdout) ?? [];
      expect(await requests.find("acme", id)).toMatchObject({
        status: "queued",
        subject: { email: "jane@example.com" },
      });
      expect(erased).toEqual([{ clientId: "acme", requestId: id }]);
      expect(done.stdout + done.stderr).not.toMatch(/jane/i);

      expect(await jsonOf("erase", id, "--client", "acme")).toMatchObject({
        request_id: id,
        status: "queued",
      });
      expect(erased).toHaveLength(1);
      expect((await ops("erase", id, "--client", "acme", "--yes")).code).toBe(0);
      expect(erased).toHaveLength(2);

      const body = { type: "ERASURE", identifiers: [{ type: "end_user_id", value: "from-the-input" }] };
      const words = ["erase", "--client", "acme", "--file", "-", "--yes"];
      const piped = await startProcess(words, JSON.stringify(body)).ended;
      expect(piped).toMatchObject({ code: 0 });
      const [, pipedId = ""] = /([0-9a-f]{32}-\d{10})/.exec(piped.stdout) ?? [];
      expect(await requests.find("acme", pipedId)).toMatchObject({
        subject: { email: null, identifiers: body.identifiers },
      });
      expect(piped.stdout + piped.stderr).not.toContain("from-the-input");
    } finally {
      await session.close();
    }
  });
});

describe("erase preview, approve and refuse", () => {
  it("count what a request would reach, and decide about one that waits", async () => {
    const session = createSession({ url: stack.clickhouse.url("intake"), application: "test" });
    const requests = createRequestStore({ session, now: Date.now, idSecret });
    const waiting = async (value: string, store = requests): Promise<string> => {
      const subject = { email: null, identifiers: [{ type: "chatter_id" as const, value }] };
      const { requestId } = await store.open("acme", subject);
      await store.setStatus("acme", requestId, "awaiting_approval");
      return requestId;
    };
    const statusOf = async (id: string) => (await requests.find("acme", id))?.status;
    try {
      await runSql(
        stack.clickhouse.url("migrator"),
        `INSERT INTO messages (client_id, message_id, date_created, uploaded_at, sender)
          SELECT 'acme', toString(number), '2026-10-04', now64(6), if(number < 3, 'Agent Smith', 'other') FROM numbers(10)`,
      );
      const [yes, no] = [await waiting("Agent Smith"), await waiting("other")];
      const counts = { client_id: "acme", records: 3, stored_records: 10, rows: { messages: 3 } };
      expect(await jsonOf("erase", "preview", yes)).toMatchObject(counts);
      const named = ["--client", "acme", "--chatter-id", "Agent Smith"];
      expect(await jsonOf("erase", "preview", ...named)).toMatchObject(counts);
      expect((await ops("erase", "preview", yes)).stdout).toContain("3 of about 10 (30.00 %)");
      expect(await runSql(stack.clickhouse.url("migrator"), "SELECT count() FROM erasure_keys")).toBe("0\n");
      expect((await ops("erase", yes, "--client", "acme", "--yes")).stderr).toContain("waits for approval");

      const before = erased.length;
      expect((await ops("erase", "refuse", no, "--yes")).stdout).toContain(`${no} is refused`);
      expect(await requests.find("acme", no)).toMatchObject({
        status: "refused",
        subject: { identifiers: [] },
      });
      expect(erased).toHaveLength(before);
      expect((await ops("erase", "approve", yes, "--yes")).code).toBe(0);
      expect(await statusOf(yes)).toBe("approved");
      expect(erased.slice(before)).toEqual([{ clientId: "acme", requestId: yes }]);
      for (const id of [yes, no]) {
        expect((await ops("erase", "approve", id, "--yes")).stderr).toContain("does not wait for approval");
      }
      expect((await ops("erase", "preview", no)).stderr).toContain(`the request ${no} is refused`);
      // A clock ahead makes it the same call within a second, however slowly the command starts.
      const ahead = createRequestStore({ session, now: () => Date.now() + 60_000, idSecret });
      const open = await waiting("third", ahead);
      const again = ["--client", "acme", "--chatter-id", "third", "--detach", "--yes"];
      expect((await ops("erase", ...again)).stdout).toContain(`${open} is awaiting_approval`);
    } finally {
      await session.close();
    }
  });
});

describe("dead-letters and lag", () => {
  it("show what was refused, and how far ingest is", async () => {
    const producer = createProducer({ brokers: stack.kafka.brokers, clientId: "test", log });
    await producer.start();
    const headers = (reason: string, minute: number) => ({
      "dl-reason": reason,
      "dl-detail": "csat.score",
      "dl-topic": "messages",
      "dl-partition": "0",
      "dl-offset": String(minute),
      "dl-rejected-at": `2026-11-01T06:0${minute}:00.000Z`,
      "dl-replays": "0",
    });
    try {
      await producer.send("messages.dead-letter", [
        { key: null, value: Buffer.from('{"_id":"m1"}'), headers: headers("invalid_record", 1) },
        { key: null, value: Buffer.from("not json"), headers: headers("invalid_envelope", 2) },
      ]);
      await producer.send("messages", [{ key: null, value: Buffer.from("{}"), headers: {} }]);
    } finally {
      await producer.stop();
    }
    const [all, one] = await Promise.all([
      jsonOf("dead-letters", "list"),
      ops("dead-letters", "list", "--reason", "invalid_record", "--limit", "1"),
    ]);
    expect(all).toMatchObject([
      { dead_letter: "messages/0/1", reason: "invalid_envelope" },
      { dead_letter: "messages/0/0", reason: "invalid_record" },
    ]);
    expect(one.stdout).toContain("all of 1: 1 messages invalid_record");
    expect(one.stdout).not.toContain("m1");
    const [shown, unknown, lag] = await Promise.all([
      ops("dead-letters", "show", "messages/0/0"),
      ops("dead-letters", "show", "messages/0/7"),
      jsonOf("status", "--partitions"),
    ]);
    expect(shown.stdout).toContain('{"_id":"m1"}');
    expect(unknown.stderr).toContain("there is no dead letter messages/0/7");
    expect(lag).toMatchObject({
      topics: [{ lag: 0 }, { topic: "messages", list: "messages", lag: 1, watermark: null }, { lag: 0 }],
    });
  });

  it("say it when Redis stops, and when a topic is not there", async () => {
    const missing = await start(["status", "--partitions"], { TOPIC_MESSAGES: "chat.messages" }).ended;
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("topics create") });
    await workers?.stop();
    workers = undefined;
    await stack.redis.stop();
    expect(await ops("jobs", "list")).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/Redis does not answer at .*ECONNREFUSED.*REDIS_URL/),
    });
  });
});
