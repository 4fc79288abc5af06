import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import {
  type Claim,
  compactJob,
  createExclusive,
  createIdempotencyStore,
  createJobClient,
  createRedis,
  erasureJob,
  erasureJobId,
  type JobClient,
  type JobState,
  type Redis,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { until } from "../system/until.ts";
import type { RacerOrder } from "../processes/queue-racer.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { whileStopped } from "../system/while-stopped.ts";

const log = createLogger({ service: "test", level: "silent" });
const AWAY = { code: "redis_unavailable", retryable: true };

let stack: TestStack;
const racers: ChildProcess[] = [];
const parts: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  stack = await startTestStack({ servers: ["redis"] });
});

afterEach(async () => {
  await Promise.all(parts.splice(0).map((part) => part.stop()));
  for (const racer of racers.splice(0)) {
    racer.disconnect();
    await once(racer, "exit");
  }
});

afterAll(async () => {
  await stack?.stop();
});

const startRacer = async (): Promise<(order: RacerOrder) => Promise<Claim[]>> => {
  const child = fork(join(import.meta.dirname, "../processes/queue-racer.ts"), [stack.redis.url], {
    execArgv: [],
  });
  racers.push(child);
  await once(child, "message");
  return async (order) => {
    child.send(order);
    const [answers] = (await once(child, "message")) as [Claim[]];
    return answers;
  };
};

describe("idempotency store", () => {
  const startStore = async (leaseMs = 30_000, secrets: readonly string[] = ["a secret"]) => {
    const redis: Redis = createRedis({ url: stack.redis.url, log });
    parts.push(redis);
    await redis.start();
    return createIdempotencyStore({ redis, secrets, ttlSeconds: 60, leaseMs });
  };
  const taken = async (claim: Promise<Claim>): Promise<Extract<Claim, { state: "claimed" }>> => {
    const answer = await claim;
    if (answer.state !== "claimed") throw new Error(`not claimed: ${answer.state}`);
    return answer;
  };
  const claimed = async (claim: Promise<Claim>): Promise<string> => (await taken(claim)).token;

  it("gives each key to one of two processes that claim at once", async () => {
    const [one, other] = await Promise.all([startRacer(), startRacer()]);
    const keys = Array.from({ length: 200 }, (_, index) => `race-${index}`);
    const order: RacerOrder = { keys, work: "same" };
    const [first, second] = await Promise.all([one(order), other(order)]);
    for (const index of keys.keys()) {
      const states = new Set([first[index]?.state, second[index]?.state]);
      expect(states).toEqual(new Set(["claimed", "running"]));
    }
  });

  it("answers what was done, and tells another fingerprint apart at every stage", async () => {
    const store = await startStore();
    const token = await claimed(store.claim("acme", "k", "body"));
    expect(await store.claim("acme", "k", "body")).toEqual({ state: "running" });
    expect(await store.claim("acme", "k", "other body")).toEqual({ state: "other" });
    expect(await store.complete("acme", "k", token, '{"ok":"é"}')).toBe(true);
    expect(await store.claim("acme", "k", "body")).toEqual({ state: "done", result: '{"ok":"é"}' });
    expect(await store.claim("acme", "k", "other body")).toEqual({ state: "other" });
    await store.release("acme", "k", token);
    expect((await store.claim("acme", "k", "body")).state).toBe("done");
  });

  it("keeps apart scopes and keys, whatever characters they have", async () => {
    const store = await startStore();
    const pairs: [string, string][] = [
      ["a", "b:c"],
      ["a:b", "c"],
      ["a", "b c"],
      ["a", "b\r\nc"],
      ["a", "x".repeat(10_000)],
    ];
    for (const [scope, key] of pairs) expect((await store.claim(scope, key, "f")).state).toBe("claimed");
  });

  it("stores neither keys nor work, nor hashes of them that can be made without the secret", async () => {
    const stored = (): Promise<string> =>
      redisCommand(
        stack.redis.url,
        `EVAL "local all = {} for _, name in ipairs(redis.call('KEYS', 'conversation-export:idempotency:*')) do all[#all + 1] = name .. ' ' .. table.concat(redis.call('HMGET', name, 'fingerprint', 'id'), ' ') end return table.concat(all, ';')" 0`,
      );
    await redisCommand(stack.redis.url, "FLUSHDB");
    const work = JSON.stringify(["spring", "en", [["phone_number", "+15551234567"]]]);
    for (const secret of ["one secret", "another secret"])
      await (await startStore(30_000, [secret])).claim("sms_trigger:acme", "+15551234567", work);
    const text = await stored();
    const names = text.match(/conversation-export:idempotency:[\da-f]{64} [\da-f]{64}/g) ?? [];
    expect(names).toHaveLength(2);
    const [one, other] = names.map((line) => line.split(" "));
    expect(one?.[0]).not.toBe(other?.[0]);
    expect(one?.[1]).not.toBe(other?.[1]);
    expect(text).not.toContain("5551234567");
    for (const guess of [
      work,
      "+15551234567",
      JSON.stringify(["sms_trigger:acme", "+15551234567"]),
      JSON.stringify(["key", "sms_trigger:acme", "+15551234567"]),
      JSON.stringify(["work", "sms_trigger:acme", "+15551234567", work]),
    ])
      expect(text).not.toContain(createHash("sha256").update(guess).digest("hex"));
  });

  it("knows a key through all steps of a change of the secret", async () => {
    const [before, accepting, changed, after] = await Promise.all([
      startStore(30_000, ["old"]),
      startStore(30_000, ["old", "new"]),
      startStore(30_000, ["new", "old"]),
      startStore(30_000, ["new"]),
    ]);
    // Processes of neighbouring steps run concurrently.
    const pairs = [
      [before, accepting],
      [accepting, changed],
      [changed, after],
    ] as const;
    for (const [at, [one, other]] of pairs.entries()) {
      for (const [first, second, way] of [
        [one, other, "there"],
        [other, one, "back"],
      ] as const) {
        const key = `change-${at}-${way}`;
        const claim = await taken(first.claim("acme", key, "body"));
        expect(await second.claim("acme", key, "body")).toEqual({ state: "running" });
        expect(await second.claim("acme", key, "other body")).toEqual({ state: "other" });
        expect(await first.complete("acme", key, claim.token, "result")).toBe(true);
        expect(await second.claim("acme", key, "body")).toEqual({ state: "done", result: "result" });

        const broken = await taken(first.claim("acme", `${key}-broken`, "body"));
        await first.abandon("acme", `${key}-broken`, broken.token);
        const next = await taken(second.claim("acme", `${key}-broken`, "body"));
        expect(next).toMatchObject({ fresh: false, id: broken.id });
        expect(await first.complete("acme", `${key}-broken`, broken.token, "late")).toBe(false);
        expect(await second.complete("acme", `${key}-broken`, next.token, "result")).toBe(true);
        expect((await first.claim("acme", `${key}-broken`, "body")).state).toBe("done");

        const freed = await taken(first.claim("acme", `${key}-freed`, "body"));
        await first.release("acme", `${key}-freed`, freed.token);
        expect((await second.claim("acme", `${key}-freed`, "other body")).state).toBe("claimed");
      }
    }
  });

  it("keeps an abandoned key for the same work, under the id of its first claim", async () => {
    const store = await startStore();
    const first = await taken(store.claim("acme", "abandoned", "body"));
    expect(first.fresh).toBe(true);
    await store.abandon("acme", "abandoned", "not the token");
    expect((await store.claim("acme", "abandoned", "body")).state).toBe("running");
    await store.abandon("acme", "abandoned", first.token);
    expect(await store.claim("acme", "abandoned", "other body")).toEqual({ state: "other" });
    expect(await store.complete("acme", "abandoned", first.token, "late")).toBe(false);
    const second = await taken(store.claim("acme", "abandoned", "body"));
    expect(second).toMatchObject({ fresh: false, id: first.id });
    expect((await store.claim("acme", "abandoned", "body")).state).toBe("running");

    await store.release("acme", "abandoned", second.token);
    const anew = await taken(store.claim("acme", "abandoned", "other body"));
    expect(anew.fresh).toBe(true);
    expect(anew.id).not.toBe(first.id);
  });

  it("lets a claim whose owner died be taken after its lease, and the dead one not complete", async () => {
    const leaseMs = 300;
    const store = await startStore(leaseMs);
    const begun = performance.now();
    const { token: dead, id } = await taken(store.claim("acme", "lease", "body"));
    let token = "";
    await until("the lease has run out", 5_000, async () => {
      const claim = await store.claim("acme", "lease", "body");
      if (claim.state !== "claimed") {
        expect(claim.state).toBe("running");
        return false;
      }
      expect(claim).toMatchObject({ fresh: false, id });
      token = claim.token;
      return true;
    });
    // The clock of Redis has whole milliseconds.
    expect(performance.now() - begun).toBeGreaterThan(leaseMs - 5);
    await store.release("acme", "lease", dead);
    await store.abandon("acme", "lease", dead);
    expect((await store.claim("acme", "lease", "other body")).state).toBe("other");
    expect(await store.complete("acme", "lease", dead, "old")).toBe(false);
    expect(await store.complete("acme", "lease", token, "new")).toBe(true);
    expect(await store.claim("acme", "lease", "body")).toEqual({ state: "done", result: "new" });
  });

  it("says quickly that Redis is away, and works again when it is back", async () => {
    const store = await startStore();
    const token = await claimed(store.claim("acme", "away", "body"));
    await stack.redis.kill();
    try {
      const started = performance.now();
      await expect(store.claim("acme", "away", "body")).rejects.toMatchObject(AWAY);
      await expect(store.complete("acme", "away", token, "r")).rejects.toMatchObject(AWAY);
      await expect(store.release("acme", "away", token)).rejects.toMatchObject(AWAY);
      await expect(store.abandon("acme", "away", token)).rejects.toMatchObject(AWAY);
      expect(performance.now() - started).toBeLessThan(8_000);
    } finally {
      await stack.redis.start();
    }
    await until("claims work again", 10_000, async () => {
      const claim = await store.claim("acme", "back", "body").catch(() => undefined);
      return claim?.state === "claimed";
    });
  });
});

describe("exclusive work", () => {
  const LOCK_MS = 9_000;
  const startExclusive = async () => {
    const redis = createRedis({ url: stack.redis.url, log });
    parts.push(redis);
    await redis.start();
    return createExclusive({ redis, lockMs: LOCK_MS });
  };
  const { signal } = new AbortController();
  const openWork = () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const ended = Promise.withResolvers<string>();
    const work = (held: AbortSignal): Promise<string> => {
      begun.resolve(held);
      return ended.promise;
    };
    return { work, begun: begun.promise, end: ended.resolve };
  };

  it("is done by one process at a time, for longer than the lock lasts", async () => {
    const [one, other] = [await startExclusive(), await startExclusive()];
    const [first, second] = [openWork(), openWork()];
    const running = one.run("a", signal, first.work);
    const held = await first.begun;
    const waiting = other.run("a", signal, second.work);
    let isBegun = false;
    void second.begun.then(() => {
      isBegun = true;
    });
    await expect(other.run("b", signal, () => Promise.resolve("at once"))).resolves.toBe("at once");
    await expect(other.unlessTaken("a", signal, () => Promise.resolve("at once"))).resolves.toBeUndefined();
    await expect(other.unlessTaken("b", signal, () => Promise.resolve("at once"))).resolves.toBe("at once");
    const leftMs = async (): Promise<number> =>
      Number((await redisCommand(stack.redis.url, "PTTL conversation-export:exclusive:a")).slice(1));
    let left = await leftMs();
    await until("the lock is renewed", LOCK_MS, async () => {
      const before = left;
      left = await leftMs();
      return left > before;
    });
    expect({ isBegun, lost: held.aborted }).toEqual({ isBegun: false, lost: false });
    first.end("first");
    await second.begun;
    second.end("second");
    expect(await Promise.all([running, waiting])).toEqual(["first", "second"]);
  });

  it("gives the lock back when the work fails, and waits for it no longer than asked", async () => {
    const [one, other] = [await startExclusive(), await startExclusive()];
    await expect(one.run("c", signal, () => Promise.reject(new Error("fails")))).rejects.toThrow("fails");
    const open = openWork();
    const running = one.run("c", signal, open.work);
    await open.begun;
    const stop = new AbortController();
    const waiting = other.run("c", stop.signal, () => Promise.resolve("never"));
    stop.abort(new Error("stops"));
    await expect(waiting).rejects.toThrow(/stops|aborted/);
    open.end("done");
    await running;
    // A caller that stopped waiting has not taken it.
    await expect(other.run("c", signal, () => Promise.resolve("now"))).resolves.toBe("now");
  });

  it("reports the work when another has its lock, and leaves that one alone", async () => {
    const exclusive = await startExclusive();
    const open = openWork();
    const running = exclusive.run("d", signal, open.work);
    const held = await open.begun;
    await redisCommand(stack.redis.url, "SET conversation-export:exclusive:d other");
    await until("the loss is reported", 5_000, () => held.aborted);
    expect(held.reason).toMatchObject({ code: "lock_lost", retryable: true });
    open.end("ends");
    await running;
    expect(await redisCommand(stack.redis.url, "DEL conversation-export:exclusive:d")).toBe(":1");
  });
});

describe("erasure queue", () => {
  /** Does not wait for Redis, like export-api. */
  const startQueue = async () => {
    const client = createJobClient({ url: stack.redis.url, log, connectWithinMs: 0 });
    parts.push(client);
    await client.start();
    return {
      add: (request: { clientId: string; requestId: string }): ReturnType<JobClient["add"]> =>
        client.add(erasureJob, request, { id: erasureJobId(request.requestId) }),
      status: async (requestId: string): Promise<JobState | null> =>
        (await client.get("erasure", erasureJobId(requestId)))?.state ?? null,
      counts: async () => (await client.counts()).erasure,
      stop: () => client.stop(),
    };
  };
  type Queue = Awaited<ReturnType<typeof startQueue>>;
  const added = (queue: Queue, requestId: string): Promise<void> =>
    until("the queue takes a job", 10_000, async () => {
      try {
        await queue.add({ clientId: "acme", requestId });
        return true;
      } catch (error) {
        expect(error).toMatchObject(AWAY);
        return false;
      }
    });

  it("keeps one job for a request that is added twice, by two processes", async () => {
    const [one, other] = [await startQueue(), await startQueue()];
    await added(one, "request");
    await added(other, "probe");
    const before = (await one.counts()).waiting;
    await Promise.all(
      [one, one, other, other].map((queue) => queue.add({ clientId: "acme", requestId: "r" })),
    );
    expect((await one.counts()).waiting).toBe(before + 1);
    expect(await other.status("r")).toBe("waiting");
    expect(await other.status("unknown")).toBeNull();
  });

  it("tries a failed job again with all its attempts, and replaces one that has ended", async () => {
    const [one, other] = [await startQueue(), await startQueue()];
    await added(one, "ends");
    await added(other, "probe");
    const key = "conversation-export:erasure:request-ends";
    const endAs = async (state: "completed" | "failed"): Promise<void> => {
      await redisCommand(stack.redis.url, "LREM conversation-export:erasure:wait 0 request-ends");
      await redisCommand(stack.redis.url, `ZADD conversation-export:erasure:${state} 1 request-ends`);
      await redisCommand(stack.redis.url, `HSET ${key} atm 15 finishedOn 1 returnvalue null`);
      expect(await one.status("ends")).toBe(state);
    };
    for (const state of ["failed", "completed"] as const) {
      await endAs(state);
      const before = await one.counts();
      const job = { clientId: "acme", requestId: "ends" };
      await Promise.all([one, one, other, other].map((queue) => queue.add(job)));
      expect(await one.status("ends")).toBe("waiting");
      expect(await one.counts()).toMatchObject({ waiting: before.waiting + 1, [state]: before[state] - 1 });
      const attempts = (await redisCommand(stack.redis.url, `HGET ${key} atm`)).split("\r\n").at(-1);
      expect(["0", "$-1"]).toContain(attempts);
    }
  });

  it("takes any request id", async () => {
    const queue = await startQueue();
    await added(queue, "first");
    for (const requestId of ["12345", "a:b", "a:b:c", "0192f0c1-7d5e-7c3a-9a55-0a1b2c3d4e5f", "é ü"]) {
      await queue.add({ clientId: "acme", requestId });
      expect(await queue.status(requestId)).toBe("waiting");
    }
  });

  const DAY_SECONDS = 86_400;
  it.each([
    ["compact", { range: null, force: false, dryRun: false }, 1, 18, 1.5, [30, 2_000], [90, 5_000]],
    ["erasure", { clientId: "acme", requestId: "kept" }, 10, 15, 2, [30, 100_000], [365, 100_000]],
  ] as const)("keeps the jobs of %s under the prefix of the service, tries them again at growing intervals, and forgets them in time", async (name, data, firstSeconds, attempts, days, completed, failed) => {
    const client = createJobClient({ url: stack.redis.url, log });
    parts.push(client);
    await client.start();
    const type = name === "erasure" ? erasureJob : compactJob;
    const { id } = await client.add<unknown, unknown>(type, data);
    const answer = await redisCommand(stack.redis.url, `HGET conversation-export:${name}:${id} opts`);
    expect(JSON.parse(answer.split("\r\n")[1] ?? "")).toMatchObject({
      attempts,
      backoff: { type: "exponential", delay: firstSeconds * 1_000 },
      removeOnComplete: { age: completed[0] * DAY_SECONDS, count: completed[1] },
      removeOnFail: { age: failed[0] * DAY_SECONDS, count: failed[1] },
    });
    // 1, 2, 4 … of the first interval, up to the last attempt.
    const lasts = (firstSeconds * (2 ** (attempts - 1) - 1)) / DAY_SECONDS;
    expect(Math.round(lasts * 2) / 2).toBe(days);
  });

  it("does not hang on a Redis that hangs", async () => {
    const queue = await startQueue();
    await added(queue, "hang");
    await whileStopped(stack.redis, async () => {
      const started = performance.now();
      await expect(queue.add({ clientId: "acme", requestId: "hanging" })).rejects.toMatchObject(AWAY);
      expect(performance.now() - started).toBeLessThan(5_000);
    });
    await added(queue, "hanging");
  });

  it("stops at once while Redis hangs or is gone", async () => {
    const [one, other, fresh] = [await startQueue(), await startQueue(), await startQueue()];
    await added(one, "stop");
    await added(other, "stop");
    const started = performance.now();
    await whileStopped(stack.redis, async () => {
      const hanging = one.add({ clientId: "acme", requestId: "never" }).catch((error: unknown) => error);
      const first = fresh.add({ clientId: "acme", requestId: "never" }).catch((error: unknown) => error);
      await Promise.all([one.stop(), fresh.stop()]);
      expect(await Promise.all([hanging, first])).toEqual([
        expect.objectContaining(AWAY),
        expect.objectContaining(AWAY),
      ]);
    });
    await stack.redis.kill();
    try {
      await other.stop();
      expect(performance.now() - started).toBeLessThan(30_000);
    } finally {
      await stack.redis.start();
    }
  });
});
