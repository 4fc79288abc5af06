import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import {
  createExclusive,
  createIdempotencyStore,
  createJobClient,
  createRateLimiter,
  createRedis,
  createSharedSlots,
  retentionJob,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisCommand } from "../system/redis-command.ts";
import { type OwnRedis, startRedis } from "../system/redis-servers.ts";
import { startRetention } from "../system/start-retention.ts";
import { until } from "../system/until.ts";

const log = createLogger({ service: "test", level: "silent" });
const PATIENCE_MS = 20_000;

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const program =
  process.env["VALKEY_SERVER"] ??
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "valkey-server"))
    .find(isProgram);
if (program === undefined) {
  console.warn("NOT TRIED: Valkey. Install valkey-server, or name its program in VALKEY_SERVER");
}

describe.skipIf(program === undefined)("on Valkey", () => {
  let server: OwnRedis;
  const stops: (() => Promise<unknown>)[] = [];

  const urlOf = (user: string): string => server.url.replace("//", `//${user}:any@`);
  const redisOf = async (user: string) => {
    const redis = createRedis({ url: urlOf(user), log });
    stops.push(redis.stop);
    await redis.start();
    return redis;
  };

  beforeAll(async () => {
    server = await startRedis(program === undefined ? {} : { program });
    const info = await redisCommand(server.url, "INFO server");
    console.log(`Valkey ${/valkey_version:(\S+)/.exec(info)?.[1] ?? "of unknown version"}`);
    expect(info).toContain("server_name:valkey");
  });
  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
    await server?.stop();
  });

  it("jobs run, by hand and by schedule, and are followed to their end", async () => {
    const { ran } = await startRetention(urlOf("jobs"), stops);
    const operator = createJobClient({ url: urlOf("ops"), log });
    stops.push(operator.stop);
    await operator.start();
    const { id } = await operator.add(retentionJob, { clientId: "acme", dryRun: true });
    let state = "";
    for await (const view of operator.follow("retention", id)) state = view.state;
    expect(state).toBe("completed");
    await until("the schedule ran", PATIENCE_MS, () => ran.includes("all"));
    expect(await operator.workers("retention")).toBe(1);
    expect((await operator.checkServer()).problems).toEqual([]);
    expect(await operator.remove("retention", id)).toBe("removed");
  });

  it("limits, slots and idempotency keys are shared", async () => {
    const redis = await redisOf("export-api");
    const limiter = createRateLimiter({ redis, log, answerWithinMs: PATIENCE_MS });
    const windows = [{ requests: 1, seconds: 60 }];
    expect(await limiter.consume("a", windows)).toMatchObject({ allowed: true, shared: true });
    expect(await limiter.consume("a", windows)).toMatchObject({ allowed: false, shared: true });
    const slots = createSharedSlots({ redis, log, most: 1, leaseMs: 60_000, onUnshared: () => undefined });
    expect(await slots.take("a")).not.toBeNull();
    expect(await slots.take("a")).toBeNull();
    const keys = createIdempotencyStore({ redis, secrets: ["a secret"], ttlSeconds: 60, leaseMs: 1_000 });
    const claim = await keys.claim("acme", "key", "work");
    if (claim.state !== "claimed") throw new Error(claim.state);
    expect(await keys.complete("acme", "key", claim.token, "done")).toBe(true);
  });

  it("locks are kept", async () => {
    const exclusive = createExclusive({ redis: await redisOf("jobs"), lockMs: 5_000 });
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const inner = await exclusive.run("x", signal, () => exclusive.unlessTaken("x", signal, async () => 1));
    expect(inner).toBeUndefined();
    expect(await exclusive.run("x", signal, async () => 2)).toBe(2);
  });
});
