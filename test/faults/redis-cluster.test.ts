import { existsSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { choosePorts } from "@conversation-export/local-stack";
import { createJobClient, createRedis, retentionJob } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ops } from "../system/ops.ts";
import { redisCommand } from "../system/redis-command.ts";
import { chooseClusterPort, type OwnRedis, startRedis } from "../system/redis-servers.ts";
import { type ServiceName, startService } from "../system/service-process.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";
import { listen } from "../system/listen.ts";

const SECRET = "fedcba9876543210fedcba9876543210";
const NOWHERE = "http://user:any@127.0.0.1:1/export";
const CLUSTER = ["--cluster-enabled", "yes"];
const RETENTION = { clientId: null, dryRun: true };

let stack: TestStack;
let redis: OwnRedis;
beforeAll(async () => {
  [stack, redis] = await Promise.all([
    startTestStack({ servers: ["kafka"] }),
    startRedis({ settings: CLUSTER, port: await chooseClusterPort() }),
  ]);
});
afterAll(async () => {
  await stack?.stop();
  await redis?.stop();
});

/** The server accepts any password for the user. */
const urlOf = (user: string, server = redis): string => server.url.replace("//", `//${user}:any@`);

const SERVICES = ["export-api", "jobs"] satisfies ServiceName[];

const startWith = async (name: ServiceName, server: OwnRedis) => {
  const { metrics, http, board } = await choosePorts({ names: ["metrics", "http", "board"], fixed: {} });
  const logFile = join(stack.dir, `${name}-${server.port}.log`);
  const service = startService(name, {
    metricsPort: metrics,
    logFile,
    env: {
      PORT: String(http),
      BOARD_PORT: String(board),
      KAFKA_BROKERS: stack.kafka.brokers.join(","),
      REDIS_URL: urlOf(name, server),
      CLICKHOUSE_URL: NOWHERE,
      CLICKHOUSE_LOOKUP_URL: NOWHERE,
      CLICKHOUSE_INTAKE_URL: NOWHERE,
      CURSOR_SECRET: SECRET,
      SUPPRESSION_SECRET: SECRET,
    },
  });
  return { service, text: () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "") };
};

it.each(SERVICES)("%s ends with 1 and says what Redis to use instead", async (name) => {
  const { service, text: read } = await startWith(name, redis);
  expect(await service.exited).toEqual({ code: 1, signal: null });
  const text = read();
  expect(text).toContain('"code":"redis_cluster"');
  expect(text).toContain("cluster mode off");
  expect(text).not.toContain("CROSSSLOT");
});

it("services end with 1 when a Redis in cluster mode takes the place of another", async () => {
  const former = await startRedis({ port: await chooseClusterPort() });
  const started = await Promise.all(SERVICES.map((name) => startWith(name, former)));
  let latter: OwnRedis | undefined;
  try {
    for (const { text } of started)
      await until("it is connected", 60_000, () => text().includes("connected to Redis"));
    await former.stop();
    latter = await startRedis({ settings: CLUSTER, port: former.port });
    for (const { service, text } of started) {
      expect(await service.exited).toEqual({ code: 1, signal: null });
      expect(text()).toContain('"code":"redis_cluster"');
    }
  } finally {
    for (const { service } of started) await service.kill("SIGKILL");
    await former.stop();
    await latter?.stop();
  }
});

it("is found out also when it answers late", async () => {
  let hold = true;
  let asked = false;
  const proxy = createServer((near) => {
    const far = connect(redis.port, "127.0.0.1");
    const held: Buffer[] = [];
    near.on("data", (bytes: Buffer) => {
      if (hold && bytes.includes("cluster")) {
        asked = true;
        held.push(bytes);
        // Later than a command waits for its answer, before the connection counts as lost.
        setTimeout(() => {
          hold = false;
          for (const one of held) far.write(one);
        }, 3_000);
      } else far.write(bytes);
    });
    far.pipe(near);
    for (const socket of [near, far]) socket.on("error", () => [near, far].forEach((one) => one.destroy()));
  });
  const { port, close } = await listen(proxy);
  const late = createRedis({
    url: `redis://127.0.0.1:${port}`,
    log: createLogger({ service: "test", level: "silent" }),
  });
  try {
    await expect(late.start()).rejects.toMatchObject({ code: "redis_cluster" });
    expect(asked).toBe(true);
  } finally {
    await late.stop();
    void close();
  }
});

it("doctor and commands say so in one line", async () => {
  const env = { REDIS_URL: urlOf("ops") };
  const reported = `Redis at 127.0.0.1:${redis.port} runs in cluster mode`;
  await expect(ops(env, "jobs", "list")).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`^[^\\n]*${reported}[^\\n]*cluster mode off[^\\n]*\\n$`)),
  });
  await expect(ops(env, "doctor")).rejects.toMatchObject({
    stdout: expect.stringMatching(new RegExp(`problem +Redis +server +${reported}.*\\n +-> .*REDIS_URL`)),
  });
});

it("no job is added there", async () => {
  const jobs = createJobClient({ url: redis.url, log: createLogger({ service: "test", level: "silent" }) });
  await jobs.start();
  await expect(jobs.add(retentionJob, RETENTION)).rejects.toMatchObject({ code: "redis_cluster" });
  await jobs.stop();
  expect(await redisCommand(redis.url, "DBSIZE")).toBe(":0");
});

it("a server that hides its mode is reported, and used", async () => {
  await redisCommand(redis.url, "ACL SETUSER blind on nopass ~* &* +@all -info");
  const lines: string[] = [];
  const log = createLogger({
    service: "test",
    level: "warn",
    destination: { write: (line) => lines.push(line) },
  });
  const asked = createRedis({ url: urlOf("blind"), log });
  await asked.start();
  // Without slots the server takes no key.
  await expect(asked.tryWrite()).rejects.toThrow("Redis refuses: CLUSTERDOWN");
  await asked.stop();
  expect(lines.join("")).toContain("checking Redis for cluster mode failed, it hides the setting");
});
