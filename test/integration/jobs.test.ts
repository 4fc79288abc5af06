import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { tied } from "@conversation-export/local-stack";
import { JOB_NAMES } from "@conversation-export/queue";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { ops } from "../system/ops.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { whileStopped } from "../system/while-stopped.ts";

const projectFolder = join(import.meta.dirname, "..", "..");
const main = join(projectFolder, "services", "jobs", "src", "main.ts");
const BOARD_PASSWORD = "correct horse battery";
const BOARD_PASSWORD_PREVIOUS = "the one that all know";
const POLL = { timeout: 80_000, interval: 50 };

const SCHEDULES = ["WINDOWS", "COMPACT", "ERASURE", "RETENTION", "RECONCILE"];

type Line = { level: string; msg: string; port?: number; maxmemoryPolicy?: string };
type Answer = { readonly status: number; readonly body: string; readonly headers: Headers };
type Jobs = {
  readonly child: ChildProcess;
  readonly lines: Line[];
  get(path: string, init?: RequestInit): Promise<Answer>;
  board(path: string, init?: RequestInit): Promise<Answer>;
  portOf(message: string): Promise<number>;
};

let stack: TestStack;
const running: ChildProcess[] = [];

beforeAll(async () => {
  stack = await startTestStack({ servers: ["redis", "clickhouse"] });
  await ops({ CLICKHOUSE_URL: stack.clickhouse.url("migrator") }, "migrate");
});

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

afterAll(async () => {
  await stack?.stop();
});

async function startJobs(given: Readonly<Record<string, string>> = {}): Promise<Jobs> {
  const { PATH } = process.env;
  const env = {
    PATH,
    NODE_COMPILE_CACHE: join(projectFolder, ".cache", "compile"),
    REDIS_URL: stack.redis.url,
    CLICKHOUSE_URL: stack.clickhouse.url("jobs"),
    KAFKA_BROKERS: "127.0.0.1:1",
    SUPPRESSION_SECRET: "fedcba9876543210fedcba9876543210",
    HOST: "127.0.0.1",
    METRICS_PORT: "0",
    ...Object.fromEntries(SCHEDULES.map((name) => [`${name}_INTERVAL_SECONDS`, "0"])),
    ...given,
  };
  const [program, ...args] = tied([process.execPath, main]);
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  const lines: Line[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.map((part) => JSON.parse(part) as Line));
  });
  const portOf = (message: string): Promise<number> =>
    vi.waitFor(() => {
      const found = lines.find(({ msg }) => msg === message)?.port;
      if (found === undefined) throw new Error(`not logged: ${message}`);
      return found;
    }, POLL);
  const ask = async (port: number, path: string, init: RequestInit = {}): Promise<Answer> => {
    const headers = { connection: "close", ...(init.headers as Record<string, string> | undefined) };
    const answered = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers });
    return { status: answered.status, body: await answered.text(), headers: answered.headers };
  };
  const port = await portOf("health server listens");
  return {
    child,
    lines,
    portOf,
    get: (path, init) => ask(port, path, init),
    board: async (path, init) => ask(await portOf("board listens"), path, init),
  };
}

function guessFrom(localAddress: string, port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const auth = "operator:wrong";
    request({ host: "127.0.0.1", port, path: "/board", localAddress, auth, agent: false }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    })
      .once("error", reject)
      .end();
  });
}

async function untilReady(jobs: Jobs, status: 200 | 503): Promise<string> {
  return vi.waitFor(async () => {
    const ready = await jobs.get("/ready");
    expect(ready.status).toBe(status);
    return ready.body;
  }, POLL);
}

async function untilMetric(jobs: Jobs, line: string): Promise<void> {
  await vi.waitFor(async () => expect((await jobs.get("/metrics")).body.split("\n")).toContain(line), POLL);
}

/** Kafka is down in these tests, which is logged as well. */
function aboutRedis(jobs: Jobs): Line[] {
  return jobs.lines.filter(({ level, msg }) => level !== "info" && msg.includes("Redis"));
}

it("is ready while Redis and ClickHouse answer, alive throughout, and stops with 0", async () => {
  const jobs = await startJobs();
  await untilReady(jobs, 200);
  expect(aboutRedis(jobs)).toEqual([]);
  await untilMetric(jobs, 'conversation_export_redis_up{service="jobs"} 1');

  await stack.redis.kill();
  expect(await untilReady(jobs, 503)).toContain("Redis does not answer");
  expect((await jobs.get("/live")).status).toBe(200);
  await untilMetric(jobs, 'conversation_export_redis_up{service="jobs"} 0');
  await stack.redis.start();
  await untilReady(jobs, 200);
  expect(aboutRedis(jobs)).toMatchObject([{ level: "warn", msg: "Redis is away, connecting again" }]);

  await whileStopped(stack.redis, async () => {
    expect(await untilReady(jobs, 503)).toContain("Redis does not answer");
  });
  await untilReady(jobs, 200);

  expect(await redisCommand(stack.redis.url, "CONFIG SET maxmemory 1")).toBe("+OK");
  expect(await untilReady(jobs, 503)).toMatch(/^Redis refuses: OOM command not allowed/);
  await untilMetric(jobs, 'conversation_export_redis_up{service="jobs"} 0');
  expect(await redisCommand(stack.redis.url, "CONFIG SET maxmemory 0")).toBe("+OK");
  await untilReady(jobs, 200);

  await stack.clickhouse.kill();
  try {
    expect(await untilReady(jobs, 503)).toMatch(/^warehouse_unavailable: /);
  } finally {
    await stack.clickhouse.start();
  }
  await untilReady(jobs, 200);
  jobs.child.kill("SIGTERM");
  expect(await once(jobs.child, "exit")).toEqual([0, null]);
});

it("bounds how many jobs of a queue run in all processes together", async () => {
  await untilReady(await startJobs(), 200);
  const limitOf = async (queue: string): Promise<string> => {
    const answer = await redisCommand(stack.redis.url, `HGET conversation-export:${queue}:meta concurrency`);
    return answer.split("\r\n")[1] || "none";
  };
  const limits = await Promise.all(JOB_NAMES.map(async (queue) => [queue, await limitOf(queue)]));
  expect(Object.fromEntries(limits)).toEqual({
    windows: "1",
    compact: "1",
    erasure: "2",
    reconcile: "1",
    retention: "1",
    replay: "1",
    backfill: "none",
  });
  expect(await limitOf("backfill-part")).toBe("none");
});

it("waits for a Redis that comes later, and can be stopped meanwhile", async () => {
  await stack.redis.stop();
  const [waiting, leaving] = await Promise.all([startJobs(), startJobs()]);
  try {
    expect((await leaving.get("/ready")).status).toBe(503);
    leaving.child.kill("SIGTERM");
    expect(await once(leaving.child, "exit")).toEqual([0, null]);
    expect((await waiting.get("/live")).status).toBe(200);
  } finally {
    await stack.redis.start();
  }
  await untilReady(waiting, 200);
});

it("warns of a Redis that may evict jobs", async () => {
  expect(await redisCommand(stack.redis.url, "CONFIG SET maxmemory-policy allkeys-lru")).toBe("+OK");
  try {
    const jobs = await startJobs();
    await untilReady(jobs, 200);
    expect(aboutRedis(jobs)).toMatchObject([{ maxmemoryPolicy: "allkeys-lru" }]);
  } finally {
    await redisCommand(stack.redis.url, "CONFIG SET maxmemory-policy noeviction");
  }
});

it("notes what the schedule deletes before and after, and tells in metrics what was changed", async () => {
  const operator = { CLICKHOUSE_URL: stack.clickhouse.url("migrator"), OPERATOR: "jane" };
  await ops(operator, "clients", "create", "acme", "--retention-days", "30");
  await startJobs({ RETENTION_INTERVAL_SECONDS: "86400" });
  const listed = async (): Promise<unknown[]> =>
    JSON.parse(await ops(operator, "audit", "--actor", "jobs", "--json")) as unknown[];
  await vi.waitFor(
    async () =>
      expect(await listed()).toMatchObject([
        { command: "retention run", state: "done", arguments: { clientId: null, dryRun: false }, result: "" },
      ]),
    { ...POLL, interval: 250 },
  );
  // A process reads the audit when it starts.
  const jobs = await startJobs();
  const changed =
    /^conversation_export_operator_change_age_seconds\{command="([^"]+)",state="done",service="jobs"\} ([\d.e+]+)$/gm;
  await vi.waitFor(async () => {
    const { body } = await jobs.get("/metrics");
    const age = new Map([...body.matchAll(changed)].map(([, command, value]) => [command, Number(value)]));
    expect([...age.keys()]).toEqual(expect.arrayContaining(["clients create", "retention run"]));
    for (const seconds of age.values()) expect(Math.abs(seconds)).toBeLessThan(600);
  }, POLL);
});

it("shows the queues to who knows the password, on a port of their own, and changes nothing", async () => {
  const basic = (user: string, password: string) => ({
    headers: { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` },
  });
  const [jobs, closed] = await Promise.all([
    startJobs({ BOARD_PASSWORD, BOARD_PASSWORD_PREVIOUS, BOARD_PORT: "0" }),
    startJobs(),
  ]);
  await untilReady(jobs, 200);
  const right = basic("operator", BOARD_PASSWORD);
  for (const path of ["/board", "/board/api/queues", "/board/static/x.js", "/board/nothing", "/metrics"]) {
    expect((await jobs.board(path)).status, path).toBe(401);
  }
  expect((await jobs.board("/metrics", right)).status).toBe(404);
  expect((await jobs.get("/board", right)).status).toBe(404);
  expect((await jobs.board("/board/api/queues", basic("operator", "wrong"))).status).toBe(401);
  expect((await jobs.board("/board/api/queues", basic("other", BOARD_PASSWORD))).status).toBe(401);
  for (const password of [BOARD_PASSWORD, BOARD_PASSWORD_PREVIOUS]) {
    const page = await jobs.board("/board", basic("operator", password));
    expect(page.body).toContain("<title>Jobs</title>");
    const sources = [...page.body.matchAll(/\b(?:src|href)="([^"]*)"/g)].map(([, source = ""]) => source);
    const origins = sources.map((source) => new URL(source, "http://board").origin);
    expect(new Set(origins)).toEqual(new Set(["http://board"]));
    expect(page.headers.get("content-security-policy")).toContain("default-src 'self';");
  }
  const shown = await jobs.board("/board/api/queues", right);
  const { queues } = JSON.parse(shown.body) as { queues: { name: string; readOnlyMode: boolean }[] };
  // Queues that nothing fills are left out: the board would warn that they have no workers.
  const each = [...JOB_NAMES, "backfill-part"].toSorted();
  expect(queues.map(({ name }) => name).toSorted()).toEqual(each);
  expect(queues.filter(({ readOnlyMode }) => !readOnlyMode)).toEqual([]);
  expect((await jobs.board("/board/api/queues/erasure/pause", { ...right, method: "PUT" })).status).toBe(405);

  const guesses = Array.from({ length: 30 }, (_, at) => basic("operator", `wrong ${at}`));
  const answers = await Promise.all(guesses.map((guess) => jobs.board("/board/api/queues", guess)));
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(18);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(12);
  expect((await jobs.board("/board/api/queues", right)).status).toBe(429);
  // 20 were counted; all addresses share 100.
  const port = await jobs.portOf("board listens");
  const others = await Promise.all(
    Array.from({ length: 100 }, (_, at) => guessFrom(`127.0.1.${1 + (at % 10)}`, port)),
  );
  expect(others.filter((status) => status === 401)).toHaveLength(80);
  expect(others.filter((status) => status === 429)).toHaveLength(20);

  await untilReady(closed, 200);
  expect(closed.lines.filter(({ msg }) => msg === "board listens")).toEqual([]);
  await untilMetric(
    closed,
    'conversation_export_job_queue_depth{queue="erasure",state="waiting",service="jobs"} 0',
  );
  await untilMetric(
    closed,
    'conversation_export_job_oldest_waiting_age_seconds{queue="erasure",service="jobs"} 0',
  );
  const { body: measured } = await closed.get("/metrics");
  for (const metric of [
    "conversation_export_job_queue_depth",
    "conversation_export_job_oldest_waiting_age_seconds",
    "conversation_export_job_running",
  ]) {
    const named = [...measured.matchAll(new RegExp(`^${metric}\\{queue="([^"]+)"`, "gm"))].map(
      ([, name = ""]) => name,
    );
    expect([...new Set(named)].toSorted(), metric).toEqual(each);
  }
});
