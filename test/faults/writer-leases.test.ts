import { setTimeout as sleep } from "node:timers/promises";
import { createRedis, createWriterLeases, type Redis, type WriterLeases } from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { redisCommand } from "../system/redis-command.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";

const log = createLogger({ service: "test", level: "silent" });
const LEASE_MS = 10_000;
/** Of leases that are to end while a test waits. */
const BRIEF_MS = 1_500;
const SECOND = 1_000_000;
/** Of the writers' clocks, which are not those of Redis. */
const NOON = Date.parse("2026-10-04T12:00:00Z") * 1_000;

let stack: TestStack;
let redis: Redis;
let leases: WriterLeases;
let brief: WriterLeases;

beforeAll(async () => {
  stack = await startTestStack({ servers: ["redis"] });
  redis = createRedis({ url: stack.redis.url, log });
  await redis.start();
  leases = createWriterLeases({ redis, leaseMs: LEASE_MS });
  brief = createWriterLeases({ redis, leaseMs: BRIEF_MS });
});

afterAll(async () => {
  await redis?.stop();
  await stack?.stop();
});

const renew = (id: string, uploadFrom: number, by = leases) =>
  by.renew({ id, service: "test", confirmed: 0, oldestUpload: null, uploadFrom });

const command = (line: string): Promise<string> => redisCommand(stack.redis.url, line);
const KEY = "conversation-export:writers";

/** What the server holds of a lease. */
const stored = async (id: string): Promise<Readonly<Record<string, unknown>>> => {
  const [, text = ""] = (await command(`HGET ${KEY} lease:${id}`)).split("\r\n");
  return JSON.parse(text) as Record<string, unknown>;
};
const store = (id: string, state: object): Promise<string> =>
  command(`HSET ${KEY} lease:${id} ${JSON.stringify(JSON.stringify(state))}`);

/** As if the server had kept leases for an hour. */
const longAgo = async (): Promise<void> => {
  await leases.list();
  await command(`HSET ${KEY} since ${Date.now() - 3_600_000}`);
};

beforeEach(async () => {
  await command("FLUSHALL");
  await longAgo();
});

it("never tells the same generation before and after a loss of what it kept", async () => {
  const before = await leases.generation();
  await command("FLUSHALL");
  const after = await leases.generation();
  expect(after).toBeGreaterThan(before);
  expect(await leases.generation()).toBe(after);
  expect(await leases.announce()).toBeGreaterThan(after);
});

it("settles up to the earliest instant that a lease may still use", async () => {
  expect(await leases.settledUntil(0)).toBeNull();
  await renew("a", NOON + 5 * SECOND);
  await renew("b", NOON + 2 * SECOND);
  expect(await leases.settledUntil(0)).toBe(NOON + 2 * SECOND);
  await renew("b", NOON + 9 * SECOND);
  expect(await leases.settledUntil(0)).toBe(NOON + 5 * SECOND);
  await leases.release("a");
  expect(await leases.settledUntil(0)).toBe(NOON + 9 * SECOND);
  await leases.release("b");
  expect(await leases.settledUntil(0)).toBeNull();
});

it("waits for the lease of a version that does not tell its instants", async () => {
  await renew("a", NOON);
  const later = Date.now() + 3_600_000;
  const old = JSON.stringify({ service: "old", expires_at: later, confirmed: "0", oldest_upload: "" });
  await command(`HSET ${KEY} lease:old '${old}'`);
  expect(await leases.settledUntil(0)).toBeNull();
  await leases.release("old");
  expect(await leases.settledUntil(0)).toBe(NOON);
});

it("counts a lease until it expires", async () => {
  await renew("hangs", NOON, brief);
  await until("the lease has expired", 20_000, async () => {
    await renew("lives", NOON + 5 * SECOND);
    const settled = await leases.settledUntil(0);
    expect([NOON, NOON + 5 * SECOND]).toContain(settled);
    return settled === NOON + 5 * SECOND;
  });
  expect((await leases.list()).leases.map(({ id }) => id)).toEqual(["lives"]);
});

it("begins a later lease where readers may be, although clocks are behind", async () => {
  expect(await renew("a", NOON)).toMatchObject({ uploadFrom: NOON });
  expect(await leases.settledUntil(0)).toBe(NOON);
  // Its own clock is behind.
  const { generation, heldSince, uploadFrom } = await renew("late", NOON - 60 * SECOND);
  expect(uploadFrom).toBe(NOON);
  expect(await leases.settledUntil(0)).toBe(NOON);
  // One that is held may have had a batch in flight for longer. It is told the same as at first: that answer may be lost.
  expect(await renew("late", NOON - 60 * SECOND)).toEqual({ generation, heldSince, uploadFrom: NOON });
  expect(await leases.settledUntil(0)).toBe(NOON - 60 * SECOND);
  // What was given out is not forgotten, and need not lie in the past of Redis's clock.
  await leases.release("late");
  const ahead = (Date.now() + 86_400_000) * 1_000;
  await leases.settledUntil(ahead);
  expect(await renew("later", NOON)).toMatchObject({ uploadFrom: ahead });
  expect(await renew("ahead", ahead + 1)).toMatchObject({ uploadFrom: ahead + 1 });
});

/** Stops the server for longer than brief leases last. */
const hang = (): Promise<void> => whileStopped(stack.redis, () => sleep(2 * BRIEF_MS));

it("counts no time of a lease while the server is away", async () => {
  const { heldSince } = await renew("a", NOON, brief);
  await hang();
  // An erasure may come before the renewal, and waits for it.
  await brief.announce();
  expect((await brief.list()).leases).toMatchObject([{ id: "a", confirmed: 0 }]);
  expect(await renew("a", NOON + SECOND, brief)).toMatchObject({ heldSince, uploadFrom: NOON + SECOND });
});

it.each(["list", "settledUntil"] as const)("revives no lease that %s has seen run out", async (look) => {
  const { heldSince } = await renew("a", NOON, brief);
  await until("the lease has run out", 20_000, async () => {
    await renew("b", NOON + 5 * SECOND);
    return look === "list"
      ? (await brief.list()).leases.length === 1
      : (await brief.settledUntil(0)) === NOON + 5 * SECOND;
  });
  await hang();
  expect(await brief.settledUntil(0)).toBe(NOON + 5 * SECOND);
  const again = await renew("a", NOON, brief);
  expect(again.heldSince).toBeGreaterThan(heldSince);
  expect(again.uploadFrom).toBe(NOON + 5 * SECOND);
});

it("counts the time of a lease of a process that is gone, though nobody looks for longer than a renewal takes", async () => {
  await renew("gone", NOON, brief);
  let looks = 0;
  await until("the lease has run out", 20_000, async () => {
    await sleep(BRIEF_MS * 0.6);
    looks += 1;
    return (await brief.list()).leases.length === 0;
  });
  expect(looks).toBeLessThan(6);
});

it("extends no lease of a version that does not note when its scripts run", async () => {
  await renew("former", NOON, brief);
  const { length: _, ...former } = await stored("former");
  await store("former", former);
  await hang();
  expect((await brief.list()).leases).toEqual([]);
});

it("keeps the rest of each lease when the clock is set back", async () => {
  await renew("gone", NOON, brief);
  // As if all of this had been an hour later.
  const HOUR = 3_600_000;
  const { expires_at, ...rest } = await stored("gone");
  await store("gone", { ...rest, expires_at: Number(expires_at) + HOUR });
  await command(`HSET ${KEY} seen ${Date.now() + HOUR}`);
  expect((await brief.list()).leases).toHaveLength(1);
  await until("the lease has run out", 20_000, async () => (await brief.list()).leases.length === 0);
});

it("answers those who only look when its memory is full", async () => {
  await renew("a", NOON);
  await command("CONFIG SET maxmemory 1");
  try {
    expect((await leases.list()).leases).toHaveLength(1);
  } finally {
    await command("CONFIG SET maxmemory 0");
  }
});

it("revives no lease of a server that may not know all that was seen", async () => {
  const { heldSince } = await renew("a", NOON, brief);
  await command(`HSET ${KEY} reign former`);
  await hang();
  expect((await renew("a", NOON, brief)).heldSince).toBeGreaterThan(heldSince);
});

it("settles nothing for the length of a lease after Redis was emptied, and keeps what was given out", async () => {
  const known = NOON + 60 * SECOND;
  const { heldSince } = await renew("a", known);
  expect(await leases.settledUntil(0)).toBe(known);
  await command("FLUSHALL");
  const emptiedAt = performance.now();
  // There may be another writer, whose lease is gone.
  expect((await renew("a", known + SECOND)).heldSince).toBeGreaterThan(heldSince);
  expect(await leases.settledUntil(known)).toBeNull();
  expect(await renew("b", NOON)).toMatchObject({ uploadFrom: known });
  await until("leases are known again", 20_000, async () => {
    await renew("a", known + SECOND);
    await renew("b", known + SECOND);
    return (await brief.settledUntil(known)) === known + SECOND;
  });
  expect(performance.now() - emptiedAt).toBeGreaterThan(BRIEF_MS);
});

it("settles nothing for the length of a lease after the server was promoted, also one that did so before", async () => {
  await renew("a", NOON);
  expect(await leases.settledUntil(0)).toBe(NOON);
  expect(await leases.list()).toMatchObject({ complete: true });
  // What another primary took meanwhile is lost, and this process is the same as before.
  await command("REPLICAOF 127.0.0.1 1");
  await command("REPLICAOF NO ONE");
  await until("the connection is back", 20_000, () =>
    renew("a", NOON + SECOND).then(
      () => true,
      () => false,
    ),
  );
  expect(await leases.settledUntil(NOON)).toBeNull();
  expect(await leases.list()).toMatchObject({ complete: false });
});
