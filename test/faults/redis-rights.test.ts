import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  backfillJob,
  createIdempotencyStore,
  createJobClient,
  createRateLimiter,
  createRedis,
  createSharedSlots,
  createKeyUses,
  erasureJob,
  erasureJobId,
  type JobClient,
  type Redis,
  registerQueueMetrics,
  REDIS_USERS,
  type RedisUser,
  retentionJob,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ops } from "../system/ops.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startRedis } from "../system/redis-servers.ts";
import { startRetention } from "../system/start-retention.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";

const log = createLogger({ service: "test", level: "silent" });
const BACKFILL = backfillJob.data.parse({
  source: { kind: "files", location: "s3://of-the-attacker/records" },
});

let stack: TestStack;
const stops: (() => Promise<unknown>)[] = [];

const clientOf = async (user: RedisUser): Promise<JobClient> => {
  const client = createJobClient({ url: stack.redis.urlOf(user), log });
  stops.push(client.stop);
  await client.start();
  return client;
};
const redisOf = async (user: RedisUser): Promise<Redis> => {
  const redis = createRedis({ url: stack.redis.urlOf(user), log });
  stops.push(redis.stop);
  await redis.start();
  return redis;
};

beforeAll(async () => {
  stack = await startTestStack({ servers: ["redis"] });
});
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
  await stack?.stop();
});

it("lets export-api limit, remember and add erasures, and add no other job", async () => {
  const redis = await redisOf("export-api");
  const fail = (): void => expect.unreachable("counted without Redis");
  const limiter = createRateLimiter({ redis, log, onUnshared: fail });
  expect(await limiter.consume("a", [{ requests: 1, seconds: 60 }])).toMatchObject({
    allowed: true,
    shared: true,
  });
  const slots = createSharedSlots({ redis, log, most: 1, leaseMs: 60_000, onUnshared: fail });
  expect(await slots.take("a")).not.toBeNull();
  expect(await slots.take("a")).toBeNull();
  const idempotency = createIdempotencyStore({
    redis,
    secrets: ["a secret"],
    ttlSeconds: 60,
    leaseMs: 1_000,
  });
  const claim = await idempotency.claim("acme", "key", "work");
  if (claim.state !== "claimed") throw new Error(claim.state);
  expect(await idempotency.complete("acme", "key", claim.token, "done")).toBe(true);

  const jobs = await clientOf("export-api");
  await expect(jobs.checkServer()).resolves.toMatchObject({ problems: [] });
  const request = { clientId: "acme", requestId: "r-0" };
  expect(await jobs.add(erasureJob, request, { id: erasureJobId("r-0") })).toMatchObject({ added: true });
  expect(await jobs.get("erasure", erasureJobId("r-0"))).toMatchObject({ state: "waiting" });

  await expect(jobs.add(backfillJob, BACKFILL)).rejects.toThrow(/NOPERM|permission/);
  await expect(jobs.add(retentionJob, { clientId: null, dryRun: false })).rejects.toThrow(
    /NOPERM|permission/,
  );
  expect(await redisCommand(stack.redis.url, "KEYS conversation-export:backfill*")).toBe("*0");
  expect(await redisCommand(stack.redis.url, "KEYS conversation-export:retention*")).toBe("*0");

  await createKeyUses({ redis }).note(new Map([["key_1", 1]]));
  await createKeyUses({ redis }).note(new Map([["key_1", 2]]));
  expect([...(await createKeyUses({ redis: await redisOf("ops") }).list())]).toEqual([["key_1", 2]]);
});

it("lets jobs work and operators follow, without what concerns the server", async () => {
  const url = stack.redis.urlOf("jobs");
  const { metrics, ran } = await startRetention(url, stops);
  registerQueueMetrics({ redis: await redisOf("jobs"), metrics, log, now: Date.now });

  const operator = await clientOf("ops");
  const { id } = await operator.add(retentionJob, { clientId: "acme", dryRun: true });
  await until("both jobs ran", 10_000, () => Promise.resolve(ran.includes("all") && ran.includes("acme")));
  for await (const view of operator.follow("retention", id)) {
    if (view.endedAt !== null) expect(view.state).toBe("completed");
  }
  expect(await operator.workers("retention")).toBe(1);
  expect(await operator.schedules()).toMatchObject([{ name: "retention" }]);
  expect(await operator.remove("retention", id)).toBe("removed");
  expect(await metrics.text()).toContain("conversation_export_job_oldest_waiting_age_seconds");
  for (const line of ["FLUSHALL", "CONFIG GET *", "ACL LIST", "SET elsewhere 1", "KEYS *", "SHUTDOWN"]) {
    expect(await redisCommand(url, line), line).toMatch(/NOPERM/);
  }
});

it("lets nobody in without a password who takes the printed file of users", async () => {
  const folder = await mkdtemp(join(tmpdir(), "test-users-"));
  stops.push(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "users.acl");
  await writeFile(file, await ops({}, "grants", "--redis"));
  const server = await startRedis({ settings: ["--aclfile", file] });
  stops.push(server.stop);
  const as = (user: string): string => server.url.replace("//", `//${user}:PASSWORD-OF-${user}@`);
  expect(await redisCommand(server.url, "SET foo bar")).toMatch(/^-NOAUTH/);
  expect(await redisCommand(as("default"), "PING")).toBe("+PONG");
  for (const user of REDIS_USERS) expect(await redisCommand(as(user), "PING"), user).toBe("+PONG");
});
