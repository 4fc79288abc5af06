import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Stack, startStack } from "@conversation-export/local-stack";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";

const main = join(import.meta.dirname, "..", "..", "services", "jobs", "src", "main.ts");
const POLL = { timeout: 20_000, interval: 50 };

type Line = { level: string; msg: string; port?: number; maxmemoryPolicy?: string };
type Jobs = {
  readonly child: ChildProcess;
  readonly lines: Line[];
  get(path: string): Promise<{ status: number; body: string }>;
};

let dir: string;
let stack: Stack;
const running: ChildProcess[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "jobs-test-"));
  stack = await startStack({ dir, servers: ["redis"] });
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
  await rm(dir, { recursive: true, force: true });
});

/** Starts the process and resolves when its health server listens. */
async function startJobs(): Promise<Jobs> {
  const { PATH } = process.env;
  const env = { PATH, REDIS_URL: stack.redis.url, HOST: "127.0.0.1", METRICS_PORT: "0" };
  const child = spawn(process.execPath, [main], { env, stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  const lines: Line[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.map((part) => JSON.parse(part) as Line));
  });
  const port = await vi.waitFor(() => {
    const found = lines.find((line) => line.port !== undefined)?.port;
    if (found === undefined) throw new Error("the health server does not listen");
    return found;
  }, POLL);
  return {
    child,
    lines,
    get: async (path) => {
      const answered = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } });
      return { status: answered.status, body: await answered.text() };
    },
  };
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

/** Sends one line to Redis and resolves to the first bytes of the answer. */
async function redis(line: string): Promise<string> {
  const { hostname: host, port } = new URL(stack.redis.url);
  const socket = connect({ host, port: Number(port) }, () => socket.write(`${line}\r\n`));
  try {
    const [bytes] = (await once(socket, "data")) as [Buffer];
    return bytes.toString().trim();
  } finally {
    socket.destroy();
  }
}

it("is ready while Redis answers, alive throughout, and stops with 0", async () => {
  const jobs = await startJobs();
  await untilReady(jobs, 200);
  await untilMetric(jobs, 'redis_up{service="jobs"} 1');

  await stack.redis.kill();
  expect(await untilReady(jobs, 503)).toContain("Redis does not answer");
  expect((await jobs.get("/live")).status).toBe(200);
  await untilMetric(jobs, 'redis_up{service="jobs"} 0');

  await stack.redis.start();
  await untilReady(jobs, 200);
  jobs.child.kill("SIGTERM");
  expect(await once(jobs.child, "exit")).toEqual([0, null]);
  expect(jobs.lines.filter(({ level }) => level !== "info")).toMatchObject([
    { level: "warn", msg: "Redis is away, connecting again" },
  ]);
});

it("notices a Redis that hangs", async () => {
  const jobs = await startJobs();
  await untilReady(jobs, 200);
  const { pid } = stack.redis;
  if (pid === undefined) throw new Error("Redis does not run");
  process.kill(pid, "SIGSTOP");
  try {
    expect(await untilReady(jobs, 503)).toContain("Redis does not answer");
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await untilReady(jobs, 200);
});

it("waits for a Redis that comes later, and can be stopped meanwhile", async () => {
  await stack.redis.stop();
  const waiting = await startJobs();
  const leaving = await startJobs();
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
  const kept = await startJobs();
  await untilReady(kept, 200);
  expect(kept.lines.filter(({ level }) => level === "warn")).toEqual([]);

  expect(await redis("CONFIG SET maxmemory-policy allkeys-lru")).toBe("+OK");
  try {
    const jobs = await startJobs();
    await untilReady(jobs, 200);
    expect(jobs.lines.filter(({ level }) => level === "warn")).toMatchObject([
      { maxmemoryPolicy: "allkeys-lru" },
    ]);
  } finally {
    await redis("CONFIG SET maxmemory-policy noeviction");
  }
});
