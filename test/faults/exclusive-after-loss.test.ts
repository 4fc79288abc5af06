import { createExclusive, createRedis, type Exclusive } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { redisCommand } from "../system/redis-command.ts";
import { type OwnRedis, startRedis } from "../system/redis-servers.ts";
import { until } from "../system/until.ts";

const LOCK_MS = 3_000;
const PATIENCE_MS = 60_000;
const log = createLogger({ service: "test", level: "silent" });
const signal = new AbortController().signal;

let server: OwnRedis;
let second: OwnRedis;
const stops: (() => Promise<unknown>)[] = [];

const another = async (at = server) => {
  const redis = createRedis({ url: at.url, log });
  stops.push(redis.stop);
  await redis.start();
  return createExclusive({ redis, lockMs: LOCK_MS });
};

beforeAll(async () => {
  [server, second] = await Promise.all([startRedis(), startRedis()]);
});
afterAll(async () => {
  for (const stop of stops) await stop();
  await Promise.all([server?.stop(), second?.stop()]);
});

const working = async (holder: Exclusive) => {
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
  return { held: held.catch((error: unknown) => error), holds: () => holds };
};

/** The holder has stopped when `other` gets the lock, even if `other` would not wait. */
const expectApart = async (
  other: Exclusive,
  { held, holds }: { readonly held: Promise<unknown>; readonly holds: () => boolean },
): Promise<void> => {
  expect(await other.unlessTaken("work", signal, () => Promise.resolve(holds()))).toBe(false);
  const [seen, end] = await Promise.all([other.run("work", signal, () => Promise.resolve(holds())), held]);
  expect(seen).toBe(false);
  expect(end).toMatchObject({ code: "lock_lost" });
};

it("a lock that a server has lost is not given to another while its holder works", async () => {
  const [holder, other] = await Promise.all([another(), another()]);
  const begun = performance.now();
  await other.run("work", signal, () => Promise.resolve());
  expect(performance.now() - begun, "a new server makes nobody wait").toBeLessThan(LOCK_MS);

  // Not on disk from here on, so the server loses it.
  expect(await redisCommand(server.url, "CONFIG SET appendonly no")).toBe("+OK");
  const { held, holds } = await working(holder);
  await server.kill();
  await server.start();
  expect(await redisCommand(server.url, "EXISTS conversation-export:exclusive:work")).toBe(":0");
  await expectApart(other, { held, holds });
});

it("a lock of another primary is not given out by a former one that is promoted again", async () => {
  const other = await another();
  await other.run("work", signal, () => Promise.resolve());
  await redisCommand(second.url, `REPLICAOF 127.0.0.1 ${server.port}`);
  await until("the replica has it all", PATIENCE_MS, async () =>
    (await redisCommand(second.url, "ROLE")).includes("connected"),
  );
  // As when the first hangs: the second takes over with a lock that the first never gets.
  await redisCommand(second.url, "REPLICAOF NO ONE");
  const { held, holds } = await working(await another(second));
  await second.kill();
  await redisCommand(server.url, `REPLICAOF 127.0.0.1 ${second.port}`);
  await redisCommand(server.url, "REPLICAOF NO ONE");
  expect(await redisCommand(server.url, "EXISTS conversation-export:exclusive:work")).toBe(":0");
  await expectApart(other, { held, holds });
});
