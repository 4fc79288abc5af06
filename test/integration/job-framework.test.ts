import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  createJobClient,
  createSchedules,
  hasEnded,
  type JobClient,
  type JobView,
  type Schedule,
  schedule,
} from "@conversation-export/queue";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../system/until.ts";
import { addingJob, countingJob, type RunnerArguments } from "../processes/job-runner.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";

const log = createLogger({ service: "test", level: "silent" });
const LOCK_MS = 2_000;
const SOON_MS = 20_000;

let diary: string;
let stack: TestStack;
let client: JobClient;
let diaries = 0;
const runners = new Set<ChildProcess>();

beforeAll(async () => {
  stack = await startTestStack({ servers: ["redis"] });
  client = createJobClient({ url: stack.redis.url, log });
  await client.start();
});

beforeEach(async () => {
  await redisCommand(stack.redis.url, "FLUSHALL");
  diaries += 1;
  diary = join(stack.dir, `diary-${diaries}`);
});

afterEach(async () => {
  await Promise.all([...runners].map((runner) => kill(runner, "SIGKILL")));
});

afterAll(async () => {
  await client?.stop();
  await stack?.stop();
});

const startRunner = async (options: Partial<RunnerArguments> = {}): Promise<ChildProcess> => {
  const args: RunnerArguments = { url: stack.redis.url, diary, lockMs: LOCK_MS, mended: false, ...options };
  const child = fork(join(import.meta.dirname, "../processes/job-runner.ts"), [JSON.stringify(args)], {
    execArgv: [],
    env: { ...process.env, NODE_COMPILE_CACHE: join(import.meta.dirname, "..", "..", ".cache", "compile") },
  });
  runners.add(child);
  await once(child, "message");
  return child;
};

const kill = async (runner: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  runners.delete(runner);
  if (runner.exitCode !== null || runner.signalCode !== null) return;
  const exited = once(runner, "exit");
  runner.kill(signal);
  if (signal === "SIGKILL") runner.kill("SIGCONT");
  await exited;
};

const lines = (): string[] => (existsSync(diary) ? readFileSync(diary, "utf8").trim().split("\n") : []);
const untilLine = (line: string): Promise<void> => until(line, SOON_MS, () => lines().includes(line), 20);

const end = async (name: JobView["name"], id: string): Promise<JobView> => {
  let last: JobView | undefined;
  const signal = AbortSignal.timeout(SOON_MS);
  for await (const view of client.follow(name, id, { everyMs: 50, signal })) last = view;
  if (last === undefined || !hasEnded(last)) throw new Error(`${id} did not end: ${JSON.stringify(last)}`);
  return last;
};
const times = (line: string): number => lines().filter((one) => one === line).length;

it("a process that runs jobs is counted while it is connected", async () => {
  expect(await client.workers("compact")).toBe(0);
  const runner = await startRunner();
  await until("it is seen", SOON_MS, async () => (await client.workers("compact")) === 1);
  expect(await client.workers("erasure")).toBe(0);
  await kill(runner, "SIGKILL");
  await until("it is gone", SOON_MS, async () => (await client.workers("compact")) === 0);
});

describe("jobs at a time", () => {
  it.each([1, 2])("are %d in all processes together, however many there are", async (limit) => {
    const atOnce = { globalConcurrency: limit, concurrency: 2 };
    await Promise.all([startRunner({ atOnce }), startRunner({ atOnce })]);
    const ids = ["a", "b", "c", "d", "e"];
    for (const id of ids) await client.add(countingJob, { steps: 3, pauseMs: 100 }, { id });
    for (const id of ids) expect(await end("compact", id)).toMatchObject({ state: "completed" });
    let running = 0;
    let most = 0;
    for (const line of lines()) {
      if (line.endsWith(" begins 0")) running += 1;
      most = Math.max(most, running);
      if (line.endsWith(" saved 2")) running -= 1;
    }
    expect(most).toBe(limit);
  });

  it("are one part of a split job in each process", async () => {
    await Promise.all([startRunner(), startRunner()]);
    await client.add(addingJob, { parts: 8, pauseMs: 300, broken: null }, { id: "add" });
    expect(await end("backfill", "add")).toMatchObject({ state: "completed" });
    const processOf = new Map<string, string>();
    const running = new Set<string>();
    let most = 0;
    for (const line of lines()) {
      const [, part = "", pid] = /^(part \d+)(?: begins in (\d+))?$/.exec(line) ?? [];
      if (part === "") continue;
      if (pid === undefined) {
        running.delete(processOf.get(part) ?? "");
        continue;
      }
      expect(running, `two parts in the process ${pid}`).not.toContain(pid);
      processOf.set(part, pid);
      running.add(pid);
      most = Math.max(most, running.size);
    }
    expect(most).toBe(2);
  });
});

describe("a worker that dies", () => {
  it("twice in the middle leaves a job that goes on from what it has saved, and parts that are not run again", async () => {
    await client.add(countingJob, { steps: 12, pauseMs: 60 }, { id: "count" });
    await client.add(addingJob, { parts: 8, pauseMs: 120, broken: null }, { id: "add" });
    const first = await startRunner();
    await untilLine("part 3");
    await kill(first, "SIGKILL");
    const second = await startRunner();
    await untilLine("part 5");
    await kill(second, "SIGKILL");
    await startRunner();

    expect(await end("compact", "count")).toMatchObject({
      state: "completed",
      result: { counted: 12 },
      progress: { done: 12, total: 12, unit: "steps" },
    });
    expect(await end("backfill", "add")).toMatchObject({
      state: "completed",
      result: { sum: 36, order: [1, 2, 3, 4, 5, 6, 7, 8] },
      parts: { total: 8, done: 8, failed: 0 },
      progress: { done: 80, total: 80, unit: "rows" },
    });
    // Only the step in progress at the death is repeated.
    const repeated = (prefix: string, count: number): number =>
      Array.from({ length: count }, (_, index) => times(`${prefix} ${index}`)).filter((n) => n > 1).length;
    expect(repeated("count step", 12)).toBeLessThanOrEqual(2);
    expect(repeated("part", 9)).toBeLessThanOrEqual(2);
    expect(Array.from({ length: 8 }, (_, index) => times(`part ${index + 1}`))).not.toContain(0);
  });

  it("for a while only, since it hangs, has lost its lock: it stops, and saves nothing over what the other has", async () => {
    await client.add(countingJob, { steps: 6, pauseMs: 50 }, { id: "count" });
    const file = `${diary}-go`;
    await startRunner({ blocks: { step: 2, file, ms: 2.5 * LOCK_MS } });
    await untilLine("count step 2");
    await startRunner();
    writeFileSync(file, "");
    expect(await end("compact", "count")).toMatchObject({ state: "completed", result: { counted: 6 } });
    await untilLine("count stops lock_lost");
    expect(times("count begins 2")).toBe(1);
    expect(times("count saved 2")).toBe(1);
    expect(await client.get("compact", "count")).toMatchObject({ state: "completed", progress: { done: 6 } });
  });
});

it("a worker that is asked to stop gives its job back at once, and the attempt does not count", async () => {
  await client.add(countingJob, { steps: 15, pauseMs: 100 }, { id: "count" });
  await client.add(addingJob, { parts: 3, pauseMs: 2_000, broken: null }, { id: "add" });
  const runner = await startRunner({ lockMs: 60_000 });
  await untilLine("count step 1");
  await kill(runner, "SIGTERM");
  expect(lines()).toContain("count stops stopping");
  expect(await client.get("compact", "count")).toMatchObject({ state: "waiting", attempt: 0 });
  expect(await client.get("backfill", "add")).toMatchObject({ state: "parts" });
  await startRunner({ lockMs: 60_000 });
  expect(await end("compact", "count")).toMatchObject({ result: { counted: 15, attempts: 1 } });
});

it("a worker that is asked to stop without Redis stops all the same, and its job is found stalled", async () => {
  await client.add(countingJob, { steps: 15, pauseMs: 50 }, { id: "count" });
  const runner = await startRunner();
  await untilLine("count step 1");
  await stack.redis.kill();
  const before = performance.now();
  await kill(runner, "SIGTERM");
  const took = performance.now() - before;
  await stack.redis.start();
  expect(took).toBeLessThan(30_000);
  await startRunner();
  expect(await end("compact", "count")).toMatchObject({ state: "completed", result: { counted: 15 } });
});

it("a restart of Redis is lived through", async () => {
  await client.add(countingJob, { steps: 20, pauseMs: 50 }, { id: "count" });
  await client.add(addingJob, { parts: 8, pauseMs: 120, broken: null }, { id: "add" });
  await startRunner();
  await untilLine("part 2");
  const ends = Promise.all([end("compact", "count"), end("backfill", "add")]);
  await stack.redis.kill();
  await stack.redis.start();
  const [counted, added] = await ends;
  expect(counted).toMatchObject({ state: "completed", result: { counted: 20 } });
  expect(added).toMatchObject({ state: "completed", result: { sum: 36 } });
});

describe("cancelling", () => {
  it("stops a job that runs within seconds; trying it again goes on from there", async () => {
    await client.add(countingJob, { steps: 25, pauseMs: 40 }, { id: "count" });
    await startRunner();
    await untilLine("count step 1");
    expect(await client.cancel("compact", "count")).toBe("cancelling");
    expect(await end("compact", "count")).toMatchObject({
      state: "cancelled",
      cancelling: false,
      reason: "cancelled: stopped on request",
    });
    expect(await client.cancel("compact", "count")).toBe("ended");
    expect(await client.list({ states: ["failed"] })).toEqual([]);
    expect(await client.retry("compact", "count")).toBe("retried");
    expect(await end("compact", "count")).toMatchObject({ state: "completed" });
    expect(times("count step 0")).toBe(1);
  });

  it("reaches a job that waits, and the parts of one that was split; tried again it runs what was not run", async () => {
    await client.add(countingJob, { steps: 1, pauseMs: 0 }, { id: "waits" });
    await client.cancel("compact", "waits");
    expect(await client.get("compact", "waits")).toMatchObject({ state: "waiting", cancelling: true });
    await client.add(addingJob, { parts: 6, pauseMs: 200, broken: null }, { id: "add" });
    await startRunner();
    expect(await end("compact", "waits")).toMatchObject({ state: "cancelled" });
    expect(times("waits begins 0")).toBe(0);
    await untilLine("part 1");
    await client.cancel("backfill", "add");
    expect(await end("backfill", "add")).toMatchObject({ state: "cancelled" });
    const done = lines().length;
    expect(done).toBeLessThan(6);
    expect(
      await client.add(addingJob, { parts: 1, pauseMs: 0, broken: null }, { id: "add", ended: "keep" }),
    ).toEqual({ id: "add", added: false });
    await client.retry("backfill", "add");
    expect(await end("backfill", "add")).toMatchObject({ state: "completed", result: { sum: 21 } });
    expect(times("part 1")).toBe(1);
  });
});

describe("failing", () => {
  it("is tried again when it may pass, and kept with its reason when not, without a word of data", async () => {
    await startRunner();
    for (const trouble of ["retryable", "final", "bug"] as const) {
      await client.add(countingJob, { steps: 1, pauseMs: 0, trouble }, { id: trouble });
    }
    expect(await end("compact", "retryable")).toMatchObject({ state: "completed", result: { attempts: 2 } });
    expect(await end("compact", "final")).toMatchObject({
      state: "failed",
      attempt: 1,
      reason: "never: not ever",
    });
    const { reason } = await end("compact", "bug");
    expect(reason).toMatch(/^bug: TypeError at job-runner\.ts:\d+; the log has the rest$/);
  });

  it("of a part lets the others end, names it, and trying again runs that part alone", async () => {
    await client.add(addingJob, { parts: 5, pauseMs: 20, broken: 2 }, { id: "add" });
    const runner = await startRunner();
    const failed = await end("backfill", "add");
    expect(failed).toMatchObject({ state: "failed", parts: { total: 5, done: 4, failed: 1 } });
    expect(failed.reason).toMatch(
      /^parts_failed: 1 of 5 parts failed; add-.*-part-1: broken: part 2 is broken$/,
    );
    await kill(runner, "SIGTERM");
    await startRunner({ mended: true });
    expect(await client.retry("backfill", "add")).toBe("retried");
    expect(await end("backfill", "add")).toMatchObject({ state: "completed", result: { sum: 15 } });
    expect([1, 2, 3, 4, 5].map((part) => times(`part ${part}`))).toEqual([1, 1, 1, 1, 1]);
  });

  it("is what becomes of data that does not fit, and adding refuses it first", async () => {
    const wrong = { steps: "many", pauseMs: 1 } as unknown as { steps: number; pauseMs: number };
    await expect(client.add(countingJob, wrong)).rejects.toMatchObject({
      code: "bad_data",
      message: expect.stringContaining("steps"),
    });
  });
});

describe("schedules", () => {
  const starting: { stop(): Promise<void> }[] = [];
  const data = { steps: 1, pauseMs: 0 };
  const startSchedules = async (...schedules: readonly Schedule[]) => {
    const metrics = createMetrics({ service: "test" });
    const made = createSchedules({ url: stack.redis.url, schedules, metrics, log, checkEveryMs: 100 });
    starting.push(made);
    await made.start();
    return metrics;
  };
  const untilSchedules = async (...everyMs: number[]): Promise<void> =>
    until(`schedules every ${everyMs.join()} ms`, SOON_MS, async () => {
      const found = await client.schedules();
      return JSON.stringify(found.map((one) => one.everyMs)) === JSON.stringify(everyMs);
    });
  afterEach(async () => {
    await Promise.all(starting.splice(0).map((one) => one.stop()));
  });

  it("run what the table says, once for all processes; what is not in the table of a new process goes", async () => {
    const line = schedule(countingJob, data, 400);
    await Promise.all([startSchedules(line), startSchedules(line), startSchedules(line)]);
    await startRunner();
    await until("three runs", SOON_MS, () => lines().filter((one) => one.endsWith("step 0")).length >= 3);
    const runs = lines().filter((one) => one.endsWith("step 0"));
    expect(new Set(runs).size).toBe(runs.length);
    const [found] = await client.schedules();
    expect(found).toMatchObject({ name: "compact", everyMs: 400 });
    await Promise.all(starting.splice(0).map((one) => one.stop()));

    await startSchedules(schedule(countingJob, { ...data, pauseMs: 1 }, 60_000));
    await untilSchedules(60_000);
    await Promise.all(starting.splice(0).map((one) => one.stop()));
    await startSchedules(schedule(countingJob, data, null));
    await untilSchedules();
  });

  it("hold when their job has failed for good, until it is tried again or removed, or a day is over", async () => {
    const begun = () => lines().filter((one) => one.endsWith("begins 0")).length;
    const everyMs = 200;
    const metrics = await startSchedules(schedule(countingJob, { ...data, trouble: "final" }, everyMs));
    await startRunner();
    const untilHeld = async () => {
      await until("it is held", SOON_MS, async () => (await client.heldSchedules()).length === 1);
      await untilSchedules();
      const [held] = await client.heldSchedules();
      if (held === undefined) throw new Error("it is not held any more");
      return held;
    };
    const held = await untilHeld();
    expect(held).toMatchObject({ name: "compact", reason: "never: not ever" });
    expect(held.until.getTime() - Date.now()).toBeGreaterThan(86_000_000);
    const shown = 'conversation_export_job_schedule_held{queue="compact",service="test"} 1';
    await until("it is shown", SOON_MS, async () => (await metrics.text()).includes(shown));
    expect(await metrics.text()).toContain(
      'conversation_export_job_next_run_timestamp_seconds{queue="compact"',
    );
    const ticks = Date.now() + 5 * everyMs;
    await until("some ticks are over", SOON_MS, () => Date.now() > ticks);
    expect(begun()).toBe(1);

    expect(await client.retry("compact", held.job)).toBe("retried");
    await until("it has begun again", SOON_MS, () => begun() === 2);
    const { job } = await untilHeld();
    const { id } = await client.add(countingJob, data);
    expect(await end("compact", id)).toMatchObject({ state: "completed" });
    expect(await client.remove("compact", id)).toBe("removed");
    expect(await client.heldSchedules()).toMatchObject([{ job }]);

    expect(await client.remove("compact", job)).toBe("removed");
    expect(await client.heldSchedules()).toEqual([]);
    await until("the schedule goes on", SOON_MS, () => begun() > 3);
    await untilHeld();
  });

  it("let go on what one of their runs has begun when they are held", async () => {
    await startSchedules(schedule(countingJob, { steps: 15, pauseMs: 100 }, 3_600_000));
    const runner = await startRunner({ lockMs: 60_000 });
    await until("it counts", SOON_MS, () => lines().some((one) => one.endsWith("step 1")));
    await kill(runner, "SIGTERM");
    await redisCommand(stack.redis.url, "SET conversation-export:job-held:compact {}");
    await startRunner();
    const id = lines()[0]?.split(" ")[0] ?? "";
    expect(await end("compact", id)).toMatchObject({ state: "completed", result: { counted: 15 } });
  });

  it("go on when a run has failed by what it found", async () => {
    await startSchedules(schedule(countingJob, { ...data, trouble: "found" }, 200));
    await startRunner();
    await until("three runs", SOON_MS, () => lines().filter((one) => one.endsWith("begins 0")).length >= 3);
    expect(await client.heldSchedules()).toEqual([]);
  });

  it("that have lost their next run get one", async () => {
    const metrics = await startSchedules(schedule(countingJob, data, 3_600_000));
    await untilSchedules(3_600_000);
    const [before] = await client.schedules();
    const lost = `repeat:compact:${before?.nextRunAt?.getTime()}`;
    // One script, since the schedule's repair could run in between; the first run is due at once.
    const lose = `return redis.call('DEL', 'conversation-export:compact:${lost}') + redis.call('LREM', 'conversation-export:compact:wait', 0, '${lost}')`;
    expect(await redisCommand(stack.redis.url, `EVAL "${lose}" 0`)).toBe(":2");
    await until("it is repaired", SOON_MS, async () =>
      (await metrics.text()).includes(
        'conversation_export_job_schedule_repairs_total{queue="compact",service="test"} 1',
      ),
    );
    // The repair is counted before the schedule is set again.
    let id = "";
    await until("its run is there", SOON_MS, async () => {
      const [after] = await client.schedules();
      id = `repeat:compact:${after?.nextRunAt?.getTime()}`;
      return (await client.get("compact", id)) !== null;
    });
    expect(await client.get("compact", id)).toMatchObject({ data });
    await expect(client.remove("compact", id)).rejects.toMatchObject({ code: "job_scheduled" });
  });
});

describe("the client", () => {
  it("adds nothing beside a job that has not ended, replaces one that has, finds, lists and removes", async () => {
    const data = { steps: 1, pauseMs: 0 };
    expect(await client.add(countingJob, data, { id: "same" })).toEqual({ id: "same", added: true });
    expect(await client.add(countingJob, data, { id: "same" })).toEqual({ id: "same", added: false });
    const { id } = await client.add(countingJob, data);
    expect(id).toMatch(/^compact-\d{8}T\d{6}-[0-9a-f]{6}$/);
    expect(await client.counts()).toMatchObject({ compact: { waiting: 2, completed: 0 } });
    expect(await client.find(id)).toMatchObject({ name: "compact", id, data, state: "waiting", attempt: 0 });
    expect(await client.remove("compact", id)).toBe("removed");
    expect(await client.find(id)).toBeNull();
    expect(await client.remove("compact", id)).toBe("unknown");

    await startRunner();
    await end("compact", "same");
    expect(await client.add(countingJob, data, { id: "same", ended: "keep" })).toEqual({
      id: "same",
      added: false,
    });
    expect(await client.add(countingJob, data, { id: "same" })).toEqual({ id: "same", added: true });
    await end("compact", "same");
    await client.add(countingJob, { steps: 100, pauseMs: 100 }, { id: "long" });
    await untilLine("long step 0");
    expect(await client.remove("compact", "long")).toBe("active");
    const listed = await client.list({ names: ["compact"] });
    expect(listed.map((view) => [view.id, view.state])).toEqual([
      ["long", "active"],
      ["same", "completed"],
    ]);
    expect(await client.list({ limit: 1 })).toHaveLength(1);
  });

  it("takes no id that is a key of the queue itself, and finds none", async () => {
    const data = { steps: 1, pauseMs: 0 };
    await client.add(countingJob, data);
    for (const id of ["wait", "paused", "meta"]) {
      await expect(client.add(countingJob, data, { id })).rejects.toMatchObject({ code: "bad_job_id" });
      expect(await client.find(id)).toBeNull();
    }
  });

  it("says within seconds that Redis is away", async () => {
    const lost = createJobClient({ url: "redis://127.0.0.1:1", log });
    await lost.start();
    const askedAt = performance.now();
    await expect(lost.find("any")).rejects.toMatchObject({ code: "redis_unavailable", retryable: true });
    expect(performance.now() - askedAt).toBeLessThan(8_000);
    await lost.stop();
  });
});
