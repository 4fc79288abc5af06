import { formatTimestampZ } from "@conversation-export/domain";
import { compactJob, type JobClient } from "@conversation-export/queue";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { fillWindow, WINDOW_MICROS, WINDOW_START } from "../bench/window-data.ts";
import { closeAllWindows, keepParts, quantile, walkWindow } from "../system/compaction-load.ts";
import { createDelivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { resultOfJob, startJobClient } from "../system/operator-jobs.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { type CatchPoint, startStatementGate } from "./statement-gate.ts";
import { startSystem, type System } from "../system/system.ts";
import { readMetric } from "../system/metrics-text.ts";
import { redisCommand } from "../system/redis-command.ts";
import { until } from "../system/until.ts";
import { createSample } from "../sample/index.ts";
import { stopProcess } from "../system/stop-process.ts";

const CONVERSATIONS = bySize(10_000, 500_000);
const EXPORTS = 4;
const BLOCK_ROWS = bySize(1_000, 10_000);
const LIVE_CONVERSATIONS = bySize(100, 40_000);
const DEADLINE = bySize(120_000, 1_800_000);
const DAY = 86_400_000_000;

const JOBS_ENV = { JOB_LOCK_MS: "2000", ...NO_SCHEDULES };

let system: System;
let queue: JobClient;
let key: string;

beforeAll(async () => {
  system = await startSystem("test-compaction");
  key = await system.key("bench");
  await system.service("export-api");
  queue = await startJobClient(system.stack.redis.url);
});
afterAll(async () => {
  await queue?.stop();
  await system?.stop();
});

const partsOf = (table: string): Promise<string> =>
  system.sql(`SELECT count() FROM system.parts WHERE active AND table = '${table}' AND partition_id = '202606'
    AND database = currentDatabase()`);

const startGate = async (side: CatchPoint["side"]) => {
  const { host, port } = system.stack.clickhouse;
  const gate = await startStatementGate({
    target: { host, port },
    jobOf: (text) => (text.includes("DELETE FROM conversation_updates") ? "compact" : null),
  });
  onTestFinished(() => gate.close());
  gate.arm(new Map([["compact", { nth: 1, side }]]));
  const env = { ...JOBS_ENV, CLICKHOUSE_URL: gate.through(system.stack.clickhouse.url("jobs")) };
  const caught = () => until("it is about to delete", DEADLINE, () => gate.caught().size === 1);
  return { gate, env, caught };
};

const endsWithTest = (process: ServiceProcess): ServiceProcess => {
  onTestFinished(() => process.kill("SIGKILL"));
  return process;
};

const addCompaction = (id: string) =>
  queue.add(compactJob, { range: null, force: false, dryRun: false }, { id });

const resultOf = (id: string) => resultOfJob(queue, compactJob, id);

it(
  "removes superseded entries while pages are read and records come in, also when its worker is killed",
  async () => {
    const seed = seedOfRun("compaction");
    await keepParts(system.stack.clickhouse.url("migrator"), [
      "conversations",
      "conversation_updates",
      "handoffs",
    ]);
    await fillWindow(system.stack.clickhouse.url("migrator"), {
      conversations: CONVERSATIONS,
      exports: EXPORTS,
      blockRows: BLOCK_ROWS,
    });
    expect(Number(await partsOf("conversations"))).toBeGreaterThanOrEqual(
      (CONVERSATIONS * EXPORTS) / BLOCK_ROWS,
    );
    await closeAllWindows(system.stack.clickhouse.url("jobs"));

    const window = (by: string) => {
      const since = formatTimestampZ(WINDOW_START);
      const to = formatTimestampZ(WINDOW_START + WINDOW_MICROS + 4 * DAY);
      const size = bySize(5_000, 10_000);
      return `${system.apiUrl}/v2/export/conversations?${by}_since=${since}&${by}_to=${to}&page_size=${size}`;
    };
    const timesBefore: number[] = [];
    const created = await walkWindow(window("created"), key, (ms) => timesBefore.push(ms));
    const updated = await walkWindow(window("updated"), key);

    const times: number[] = [];
    const differences: string[] = [];
    let walks = 0;
    let isDone = false;
    onTestFinished(() => {
      isDone = true;
    });
    const readCreated = async (): Promise<void> => {
      const { pages } = await walkWindow(window("created"), key, (ms) => times.push(ms));
      for (const [index, page] of pages.entries())
        if (page.hash !== created.pages[index]?.hash) differences.push(page.url);
      if (pages.length !== created.pages.length) differences.push("created: the number of pages");
    };
    const readUpdated = async (): Promise<void> => {
      const { records } = await walkWindow(window("updated"), key, (ms) => times.push(ms));
      if (records !== updated.records) differences.push("updated");
    };
    const readOn = async (): Promise<void> => {
      while (!isDone) {
        await readCreated();
        await readUpdated();
        walks += 1;
      }
    };
    const reading = Promise.all(Array.from({ length: bySize(1, 2) }, readOn));
    // The first failure causes the others.
    reading.catch(() => {});
    await system.service("ingest");
    const sending = createDelivery(system).send(
      createSample({
        seed,
        conversations: LIVE_CONVERSATIONS,
        messagesPerConversation: 2,
        clients: ["live"],
      }),
    );

    await addCompaction("first");
    for (const side of ["before", "after"] as const) {
      const { env, caught } = await startGate(side);
      const killed = endsWithTest(await system.service("jobs", env));
      await caught();
      await killed.kill("SIGKILL");
    }
    endsWithTest(await system.service("jobs", JOBS_ENV));
    await resultOf("first");
    await sending;
    await system.caughtUp(DEADLINE);
    const walksThen = walks;
    await until("pages are read behind it", DEADLINE, () => walks >= walksThen + bySize(2, 4));
    isDone = true;
    await reading;

    expect(differences).toEqual([]);
    expect(await system.sql("SELECT count() FROM conversation_updates WHERE client_id = 'bench'")).toBe(
      String(CONVERSATIONS),
    );
    expect(await system.sql("SELECT DISTINCT state FROM upload_windows FINAL")).toBe("compacted");
    const timesAfter: number[] = [];
    await walkWindow(window("created"), key, (ms) => timesAfter.push(ms));
    const inMs = (values: readonly number[], share: number): string => quantile(values, share).toFixed(0);
    console.log(
      `pages: ${times.length} during compaction, p50 ${inMs(times, 0.5)} ms, p99 ${inMs(times, 0.99)} ms; ` +
        `created p50 before ${inMs(timesBefore, 0.5)} ms, after ${inMs(timesAfter, 0.5)} ms`,
    );

    await addCompaction("second");
    expect(await resultOf("second")).toMatchObject({ windows: 0, supersededUpdates: 0 });
  },
  2 * DEADLINE,
);

it.each([
  { what: "and another has taken over", client: "late", flush: false },
  { what: "and Redis has been emptied", client: "flushed", flush: true },
])(
  "leaves no superseded entry when its worker was paused past its lock, $what",
  async ({ client, flush }) => {
    const conversations = 300;
    const url = system.stack.clickhouse.url("migrator");
    await fillWindow(url, { client, conversations, exports: 2, blockRows: 1_000 });
    await closeAllWindows(system.stack.clickhouse.url("jobs"));
    const startCaught = async () => {
      const { gate, env, caught } = await startGate("before");
      const jobs = endsWithTest((await system.another("jobs", env)).process);
      const idle = () =>
        until(
          "it has given up",
          DEADLINE,
          async () =>
            (await readMetric(jobs.metricsUrl, "conversation_export_job_running", { queue: "compact" })) ===
            0,
        );
      return { gate, jobs, caught, idle };
    };

    await addCompaction(client);
    const first = await startCaught();
    await first.caught();
    await stopProcess(first.jobs.pid);
    const second = await startCaught();
    await second.caught();
    if (flush) await redisCommand(system.stack.redis.url, "FLUSHALL");
    // The first continues, having deleted nothing, before the second deletes.
    first.gate.breakCaught();
    process.kill(first.jobs.pid, "SIGCONT");
    if (!flush) await first.idle();
    second.gate.release();
    if (flush) await addCompaction(client);
    await resultOf(client);
    expect(await system.sql(`SELECT count() FROM conversation_updates WHERE client_id = '${client}'`)).toBe(
      String(conversations),
    );
    expect(await system.sql("SELECT DISTINCT state FROM upload_windows FINAL")).toBe("compacted");
    // As if the killed processes had been silent for long: the next one removes their rows.
    await system.sql("DELETE FROM coordination WHERE startsWith(name, 'jobs ')");
    endsWithTest((await system.another("jobs", JOBS_ENV)).process);
    await until(
      "what was left is removed",
      DEADLINE,
      async () =>
        (await system.sql("SELECT count() FROM job_keys WHERE startsWith(run_id, 'compact')")) === "0",
    );
  },
  2 * DEADLINE,
);
