import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createJobClient,
  createRateLimiter,
  createRedis,
  hasEnded,
  type JobClient,
  type RateLimiter,
  type Redis,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countingJob, type RunnerArguments } from "../processes/job-runner.ts";
import { ops } from "../system/ops.ts";
import type { OwnRedis } from "../system/redis-servers.ts";
import { type Sentinels, startSentinels } from "../system/redis-sentinels.ts";
import { until, untilItWorks } from "../system/until.ts";
import { stopProcess } from "../system/stop-process.ts";

const log = createLogger({ service: "test", level: "silent" });
const LOCK_MS = 2_000;
const PATIENCE_MS = 60_000;
const WINDOW = [{ requests: 1_000_000, seconds: 60 }];
/** A request may wait 100 ms for Redis; the rest is for a busy machine. */
const ANSWER_MS = 1_000;

let sentinels: Sentinels;
let folder: string;
let diary: string;
let client: JobClient;
let limiter: RateLimiter;
let idle: Redis;
const runners: ChildProcess[] = [];
const stops: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "test-failover-"));
  diary = join(folder, "diary");
  sentinels = await startSentinels();
  const { url } = sentinels;
  client = createJobClient({ url, log, connectWithinMs: 500 });
  const redis = createRedis({ url, log });
  idle = createRedis({ url, log });
  stops.push(client.stop, redis.stop, idle.stop);
  await Promise.all([client.start(), redis.start(), idle.start()]);
  limiter = createRateLimiter({ redis, log });
  const args: RunnerArguments = { url, diary, lockMs: LOCK_MS, mended: false };
  for (const _ of [1, 2]) {
    const child = fork(join(import.meta.dirname, "../processes/job-runner.ts"), [JSON.stringify(args)], {
      execArgv: [],
    });
    runners.push(child);
    await once(child, "message");
  }
});

afterAll(async () => {
  for (const runner of runners) runner.kill("SIGKILL");
  for (const stop of stops) await stop();
  await sentinels?.stop();
  await rm(folder, { recursive: true, force: true });
});

const lines = (): string[] => (existsSync(diary) ? readFileSync(diary, "utf8").trim().split("\n") : []);

const load = (prefix: string) => {
  const acknowledged = new Map<string, number>();
  const waits: number[] = [];
  let sharedAt = 0;
  let stopped = false;
  const adding = async (): Promise<void> => {
    for (let index = 0; !stopped; index += 1) {
      const id = `${prefix}-${index}`;
      const added = await client.add(countingJob, { steps: 3, pauseMs: 10 }, { id }).catch(() => null);
      if (added !== null) acknowledged.set(id, performance.now());
      await sleep(50);
    }
  };
  const asking = async (): Promise<void> => {
    while (!stopped) {
      const askedAt = performance.now();
      const { shared } = await limiter.consume(prefix, WINDOW);
      waits.push(performance.now() - askedAt);
      if (shared) sharedAt = performance.now();
      await sleep(20);
    }
  };
  const both = Promise.all([adding(), asking()]);
  return {
    acknowledged,
    waits,
    sharedAt: () => sharedAt,
    stop: async () => {
      stopped = true;
      await both;
    },
  };
};

const failOver = async (prefix: string, breakIt: (primary: OwnRedis) => Promise<void> | void) => {
  const before = await sentinels.primary();
  if (before === undefined) throw new Error("no primary");
  const loaded = load(prefix);
  await until("jobs come in", PATIENCE_MS, () => loaded.acknowledged.size >= 20);
  const brokenAt = performance.now();
  await breakIt(before);
  const after = sentinels.other(before);
  await until("the other takes over", PATIENCE_MS, async () => (await sentinels.primary()) === after);
  const promotedAt = performance.now();
  await untilItWorks("jobs are read", PATIENCE_MS, () => client.get("compact", `${prefix}-0`));
  const readableAt = performance.now();
  await until("requests are counted together", PATIENCE_MS, () => loaded.sharedAt() > readableAt);
  const known = loaded.acknowledged.size;
  await until("jobs come in again", PATIENCE_MS, () => loaded.acknowledged.size >= known + 10);
  await loaded.stop();

  const lost: { id: string; msBefore: number }[] = [];
  for (const [id, at] of loaded.acknowledged) {
    let state = "";
    await until(`${id} has ended`, PATIENCE_MS, async () => {
      const view = await client.get("compact", id);
      state = view?.state ?? "unknown";
      return view === null || hasEnded(view);
    });
    if (state === "unknown") lost.push({ id, msBefore: Math.round(brokenAt - at) });
    else {
      expect(state, id).toBe("completed");
      expect(lines().filter((line) => line === `${id} saved 2`).length, id).toBeGreaterThanOrEqual(1);
    }
  }
  const [count, longest] = [loaded.acknowledged.size, Math.max(...loaded.waits)];
  console.log(
    `${prefix}: promoted after ${Math.round(promotedAt - brokenAt)} ms, readable after ${Math.round(readableAt - brokenAt)} ms; ` +
      `${lost.length} of ${count} acknowledged jobs lost; a limit took ${Math.round(longest)} ms at most`,
  );
  expect(longest).toBeLessThan(ANSWER_MS);
  return { before, after, lost };
};

describe("with three sentinels", () => {
  it("a killed primary costs no job that its replica had, and limits answer throughout", async () => {
    const { before, lost } = await failOver("killed", (primary) => primary.kill());
    // On one machine a replica is milliseconds behind.
    expect(lost.filter(({ msBefore }) => msBefore > 1_000)).toEqual([]);
    await before.start();
    await sentinels.replicated();
  });

  it("work goes on at the replica of a primary that hangs, also on an idle connection to the former primary", async () => {
    let stopped: OwnRedis | undefined;
    try {
      const { before, lost } = await failOver("paused", (primary) => {
        stopped = primary;
        return primary.pid === undefined ? undefined : stopProcess(primary.pid);
      });
      expect(lost.filter(({ msBefore }) => msBefore > 1_000)).toEqual([]);
      if (before.pid !== undefined) process.kill(before.pid, "SIGCONT");
      await sentinels.replicated();
    } finally {
      if (stopped?.pid !== undefined) process.kill(stopped.pid, "SIGCONT");
    }
    // Its connection is to the former primary, which rejects writes now.
    await untilItWorks("an idle connection goes to the new one", PATIENCE_MS, () => idle.tryWrite());
  });

  it("a name that no sentinel knows is reported, by services and commands", async () => {
    const url = sentinels.url.replace(/main$/, "other");
    const reported = 'no sentinel that answers knows a server named "other"';
    const logged: string[] = [];
    const redis = createRedis({
      url,
      log: createLogger({
        service: "test",
        level: "warn",
        destination: { write: (line) => logged.push(line) },
      }),
    });
    redis.connect();
    await until("it is reported", PATIENCE_MS, () => logged.length > 0);
    await redis.stop();
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ error: reported });
    await expect(ops({ REDIS_URL: url }, "jobs", "list")).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringContaining(reported),
    });
  });
});
