import {
  type Allowance,
  createRateLimiter,
  createRedis,
  createSharedSlots,
  type Redis,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../system/until.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { whileStopped } from "../system/while-stopped.ts";

const log = createLogger({ service: "test", level: "silent" });
const MINUTE = { requests: 20, seconds: 60 };

let stack: TestStack;
let keys = 0;
const connections: Redis[] = [];

beforeAll(async () => {
  stack = await startTestStack({ servers: ["redis"] });
});

afterAll(async () => {
  await Promise.all(connections.map((redis) => redis.stop()));
  await stack?.stop();
});

const newKey = (): string => `client-${++keys}:conversations`;

/** Long by default, so that a busy machine does not look like an absent Redis. */
const startLimiter = async (answerWithinMs = 2_000) => {
  const redis = createRedis({ url: stack.redis.url, log });
  connections.push(redis);
  let unshared = 0;
  const limiter = createRateLimiter({ redis, log, answerWithinMs, onUnshared: () => unshared++ });
  await redis.start();
  return { limiter, redis, unshared: () => unshared };
};

const allowedOf = (answers: readonly Allowance[]): number => answers.filter(({ allowed }) => allowed).length;

it("uses up nothing when one of several windows refuses", async () => {
  const { limiter } = await startLimiter();
  const key = newKey();
  const [wide, narrow] = [
    { requests: 100, seconds: 60 },
    { requests: 3, seconds: 3_600 },
  ];
  const answers = await Promise.all(Array.from({ length: 50 }, () => limiter.consume(key, [wide, narrow])));
  expect(allowedOf(answers)).toBe(3);
  expect(answers.at(-1)).toMatchObject({
    allowed: false,
    limit: 3,
    remaining: 0,
    window: narrow,
    shared: true,
  });
  expect(answers.at(-1)?.retryAfter).toBeGreaterThan(3_500);
  expect(await limiter.consume(key, [wide])).toMatchObject({ allowed: true, remaining: 96 });
});

it("reports the window with the fewest requests left, and the refusing one that lasts longest", async () => {
  const { limiter } = await startLimiter();
  const key = newKey();
  const [short, long] = [
    { requests: 5, seconds: 60 },
    { requests: 5, seconds: 3_600 },
  ];
  expect(await limiter.consume(key, [long, { requests: 2, seconds: 1 }])).toMatchObject({
    limit: 2,
    remaining: 1,
  });
  for (let used = 1; used < 5; used++) await limiter.consume(key, [short, long]);
  expect(await limiter.consume(key, [short, long])).toMatchObject({ allowed: false, window: long });
});

// These three wait for fixed times and stop no server.
it.concurrent("opens a window again when it has ended, and forgets keys", async () => {
  const { limiter } = await startLimiter();
  const key = newKey();
  const window = { requests: 2, seconds: 1 };
  const answers = await Promise.all([1, 2, 3].map(() => limiter.consume(key, [window])));
  expect(allowedOf(answers)).toBe(2);
  const { resetAt, retryAfter } = answers[2] as Allowance;
  expect(retryAfter).toBe(1);
  await until("the window resets", 3_000, () => Date.now() >= resetAt * 1000, 10);
  expect(await limiter.consume(key, [window])).toMatchObject({ allowed: true, remaining: 1, shared: true });
  const name = `conversation-export:rate:${key}`;
  expect(await redisCommand(stack.redis.url, `EXISTS ${name}`)).toBe(":1");
  await until("the key has gone", 3_000, async () => {
    return (await redisCommand(stack.redis.url, `EXISTS ${name}`)) === ":0";
  });
});

it.concurrent("opens a short window again while a long one goes on", async () => {
  const { limiter } = await startLimiter();
  const key = newKey();
  const windows = [
    { requests: 2, seconds: 1 },
    { requests: 5, seconds: 3_600 },
  ];
  for (const expected of [2, 2, 1]) {
    const answers = await Promise.all([1, 2, 3].map(() => limiter.consume(key, windows)));
    expect(allowedOf(answers)).toBe(expected);
    const { resetAt } = answers[2] as Allowance;
    if (expected === 2) await until("the window resets", 3_000, () => Date.now() >= resetAt * 1000, 10);
  }
});

it.concurrent("gives the slots of a key to all processes together, frees those of a dead one, and all without Redis", async () => {
  const process = async (leaseMs = 10_000) => {
    const redis = createRedis({ url: stack.redis.url, log });
    connections.push(redis);
    let unshared = 0;
    const slots = createSharedSlots({ redis, most: 4, leaseMs, log, onUnshared: () => unshared++ });
    await redis.start();
    return { redis, slots, unshared: () => unshared };
  };
  const [one, other, dead] = [await process(), await process(), await process(3_000)];
  const key = newKey();
  const taken = await Promise.all(
    Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? one : other).slots.take(key)),
  );
  const releases = taken.filter((release) => release !== null);
  expect(releases).toHaveLength(4);
  expect(await other.slots.take(newKey())).not.toBeNull();

  // A process that dies neither renews nor releases.
  const dying = newKey();
  for (let n = 0; n < 4; n++) await dead.slots.take(dying);
  expect(await other.slots.take(dying)).toBeNull();
  await dead.redis.stop();

  const ahead = newKey();
  const leases = [1, 2, 3, 4].map((token) => `${Date.now() + 3_600_000} ${token}`).join(" ");
  await redisCommand(stack.redis.url, `ZADD conversation-export:rate:slots:${ahead} ${leases}`);
  expect(await other.slots.take(ahead), "slots from before the clock was set back").not.toBeNull();

  const name = `conversation-export:rate:slots:${key}`;
  const endAt = async (at: number): Promise<number> => {
    const answer = await redisCommand(stack.redis.url, `ZRANGE ${name} ${at} ${at} WITHSCORES`);
    return Number(answer.split("\r\n").at(-1));
  };
  const last = await endAt(-1);
  await until("all leases are renewed", 10_000, async () => (await endAt(0)) > last);
  const kept = await redisCommand(stack.redis.url, `PTTL ${name}`);
  expect(Date.now() + Number(kept.slice(1))).toBeGreaterThan(last);
  expect(await one.slots.take(key)).toBeNull();
  releases[0]?.();
  releases[0]?.();
  await until("the released slot is free", 5_000, async () => (await one.slots.take(key)) !== null);
  expect(await other.slots.take(key)).toBeNull();

  await until("the slots are free", 10_000, async () => (await other.slots.take(dying)) !== null);
  expect(other.unshared()).toBe(0);
  for (let n = 0; n < 6; n++) expect(await dead.slots.take(dying)).not.toBeNull();
  expect(dead.unshared()).toBe(6);
});

it("keeps what was used when the limits of a client change", async () => {
  const { limiter } = await startLimiter();
  const key = newKey();
  for (let used = 0; used < 10; used++) await limiter.consume(key, [MINUTE]);
  expect(await limiter.consume(key, [{ requests: 5, seconds: 60 }])).toMatchObject({
    allowed: false,
    remaining: 0,
  });
  expect(await limiter.consume(key, [{ requests: 1_000_000, seconds: 60 }])).toMatchObject({
    allowed: true,
    remaining: 999_989,
  });
});

it("counts alone while Redis is gone, and in Redis again afterwards", async () => {
  const { limiter, unshared } = await startLimiter();
  const key = newKey();
  for (let used = 0; used < 5; used++) await limiter.consume(key, [MINUTE]);
  const inFlight = Array.from({ length: 15 }, () => limiter.consume(newKey(), [MINUTE]));
  await stack.redis.kill();
  try {
    expect(allowedOf(await Promise.all(inFlight))).toBe(15);
    const before = unshared();
    const started = performance.now();
    const alone = await Promise.all(Array.from({ length: 50 }, () => limiter.consume(key, [MINUTE])));
    expect(performance.now() - started).toBeLessThan(150);
    expect(alone.every(({ shared }) => !shared)).toBe(true);
    expect(allowedOf(alone)).toBe(20);
    expect(unshared() - before).toBe(50);
  } finally {
    await stack.redis.start();
  }
  const other = newKey();
  await until("Redis is asked again", 10_000, async () => (await limiter.consume(other, [MINUTE])).shared);
  const before = unshared();
  const together = await Promise.all(Array.from({ length: 15 }, () => limiter.consume(other, [MINUTE])));
  expect(together.every(({ shared }) => shared)).toBe(true);
  expect(unshared()).toBe(before);
});

it("notices a Redis that hangs within 100 ms, once a second and not on every request", async () => {
  const { limiter } = await startLimiter(100);
  const key = newKey();
  const window = { requests: 1_000, seconds: 60 };
  await limiter.consume(key, [window]);
  const slow: number[] = [];
  await whileStopped(stack.redis, async () => {
    const end = performance.now() + 2_500;
    while (performance.now() < end) {
      const started = performance.now();
      const { shared } = await limiter.consume(key, [window]);
      const took = performance.now() - started;
      expect(shared).toBe(false);
      expect(took).toBeLessThan(250);
      if (took > 50) slow.push(took);
      await until("the next request", 1_000, () => performance.now() - started > 5, 5);
    }
  });
  expect(slow.length).toBeGreaterThanOrEqual(1);
  expect(slow.length).toBeLessThanOrEqual(3);
  await until("Redis is asked again", 10_000, async () => (await limiter.consume(newKey(), [MINUTE])).shared);
});
