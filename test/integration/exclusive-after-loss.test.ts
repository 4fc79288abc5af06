import { createExclusive, createRedis } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { redisCommand } from "../system/redis-command.ts";
import { type OwnRedis, startRedis } from "../system/redis-servers.ts";

const LOCK_MS = 3_000;
const log = createLogger({ service: "test", level: "silent" });
const signal = new AbortController().signal;

let server: OwnRedis;
const stops: (() => Promise<unknown>)[] = [];

const another = async () => {
  const redis = createRedis({ url: server.url, log });
  stops.push(redis.stop);
  await redis.start();
  return createExclusive({ redis, lockMs: LOCK_MS });
};

beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => {
  for (const stop of stops) await stop();
  await server?.stop();
});

it("a lock that a server has lost is not given to another while its holder works", async () => {
  const [holder, other] = await Promise.all([another(), another()]);
  const begun = performance.now();
  await other.run("work", signal, () => Promise.resolve());
  expect(performance.now() - begun, "a new server makes nobody wait").toBeLessThan(LOCK_MS);

  // What follows is not on disk, so the server loses it.
  expect(await redisCommand(server.url, "CONFIG SET appendonly no")).toBe("+OK");
  const has = Promise.withResolvers<void>();
  let holds = false;
  const held = holder.run("work", signal, async (lost) => {
    holds = true;
    has.resolve();
    await new Promise((resolve) => lost.addEventListener("abort", resolve, { once: true }));
    holds = false;
    lost.throwIfAborted();
  });
  await has.promise;
  await server.kill();
  await server.start();
  expect(await redisCommand(server.url, "EXISTS conversation-export:exclusive:work")).toBe(":0");
  expect(await other.unlessTaken("work", signal, () => Promise.resolve("taken"))).toBeUndefined();
  const [seen, end] = await Promise.all([
    other.run("work", signal, () => Promise.resolve(holds)),
    held.catch((error: unknown) => error),
  ]);
  expect(seen).toBe(false);
  expect(end).toMatchObject({ code: "lock_lost" });
});
