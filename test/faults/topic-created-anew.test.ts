import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { handMade } from "../sample/hand-made.ts";
import { readMetric } from "../system/metrics-text.ts";
import { ops } from "../system/ops.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { type CatchPoint, startStatementGate, type StatementGate } from "./statement-gate.ts";
import { stopProcess } from "../system/stop-process.ts";

const TOPIC = TOPICS.end_user;
const BEFORE = 60;
const MORE = 12;
/** Each partition outgrows the former one, else its position would be out of range. */
const BEYOND = 10;
const PATIENCE_MS = 30_000;
/** How long a broker holds a fetch of ingest. */
const FETCH_WAIT_MS = 250;
const METRIC = "conversation_export_ingest_topic_created_anew_timestamp_seconds";
const LABELS = { topic: TOPIC };

type Table = "landing" | "end_users";
type Pause = {
  /** Where ingest is caught with `MORE` events; null: with none in progress. */
  readonly at: readonly [Table, CatchPoint["side"]] | null;
  /** `MORE` events come during the pause and are deleted with the topic. */
  readonly unread?: true;
  readonly by?: "SIGKILL";
  /** The topic is deleted while the broker holds a fetch, which then fails. */
  readonly heldFetch?: true;
};

const PAUSES: readonly (readonly [string, Pause])[] = [
  ["while a fetch waits for messages, which fails with the topic", { at: null, heldFetch: true }],
  ["when a fetch was answered with nothing", { at: null }],
  ["when a fetch was answered with messages, before they are read", { at: null, unread: true }],
  ["when it has fetched, before anything is written", { at: ["landing", "before"] }],
  ["when it has fetched, while the first table is written", { at: ["landing", "after"] }],
  ["before the last table is written", { at: ["end_users", "before"] }],
  ["when all is written, before its offsets are committed", { at: ["end_users", "after"] }],
  ["and is killed instead, before its offsets are committed", { at: ["end_users", "after"], by: "SIGKILL" }],
  ["and is killed instead, with nothing under way", { at: null, by: "SIGKILL" }],
];

describe("a topic that is deleted and created anew while ingest stands still", () => {
  let system: System;
  let gate: StatementGate<Table>;
  let ingest: ServiceProcess;
  let round = 0;

  const start = async (): Promise<void> => {
    const { process } = await system.another("ingest", {
      CLICKHOUSE_URL: gate.through(system.stack.clickhouse.url("writer")),
    });
    ingest = process;
  };

  beforeAll(async () => {
    system = await startSystem("test-topic-created-anew");
    const { host, port } = system.stack.clickhouse;
    gate = await startStatementGate<Table>({
      target: { host, port },
      jobOf: (text) => {
        const [, table] = /INSERT INTO (landing|end_users)\b/.exec(text) ?? [];
        return table === undefined ? null : (table as Table);
      },
    });
  });
  afterEach(() => {
    gate?.release();
    // A stopped process cannot be ended.
    if (ingest !== undefined) process.kill(ingest.pid, "SIGCONT");
  });
  afterAll(async () => {
    await system?.stop();
    await gate?.close();
  });

  const isOf = (part: string): string => `end_user_id LIKE 'r${round}-${part}-%'`;
  const countOf = async (part: string): Promise<number> =>
    Number(await system.sql(`SELECT uniqExact(end_user_id) FROM end_users WHERE ${isOf(part)}`));
  const send = async (part: string, count: number): Promise<void> => {
    const time = new Date(Date.now() - 1_000).toISOString();
    const events = Array.from({ length: count }, (_, index) => {
      const id = `r${round}-${part}-${index}`;
      const data = { end_user_id: id, created_at: time };
      const { key, value } = handMade({ kind: "end_user", client: "acme", id, time, data });
      return { key, value, partition: index % system.partitions };
    });
    await system.producer.send(TOPIC, events);
  };
  const claimsAllUntil = (micros: number) => async (): Promise<boolean> => {
    const watermark = await system.sql("SELECT max(version) FROM watermarks WHERE list = 'end_users'");
    return Number(watermark) > micros;
  };
  const createAnew = async (): Promise<void> => {
    const former = await system.admin.fetchTopicId(TOPIC);
    await system.admin.deleteTopics([TOPIC]);
    await until("the topic is created anew", PATIENCE_MS, async () => {
      await system.admin.createTopics([{ topic: TOPIC, partitions: system.partitions }]).catch(() => {});
      const id = await system.admin.fetchTopicId(TOPIC).catch(() => former);
      return id !== null && id !== former;
    });
  };

  it("before ingest has stored a watermark, and is killed: reads all of the new one, and is reported", async () => {
    gate.arm(new Map([["landing", { nth: 1, side: "before" }]]));
    await send("early", BEFORE);
    await start();
    await until("ingest is caught", PATIENCE_MS, () => gate.caught().has("landing"));
    const lists = (): Promise<string> =>
      system.sql("SELECT DISTINCT list FROM watermarks WHERE endsWith(list, 'end_users')");
    await until("the id of its topic is stored", PATIENCE_MS, async () => (await lists()) !== "");
    expect(await lists()).toBe("topic of end_users");
    await ingest.kill("SIGKILL");
    const killedAt = Date.now() / 1_000;
    await createAnew();
    await send("new", BEFORE);
    const sentAt = Date.now() * 1_000;
    gate.release();
    await start();
    await until("all of the new topic is said to be readable", PATIENCE_MS, claimsAllUntil(sentAt));
    expect(await countOf("new")).toBe(BEFORE);
    const noticedAt = await readMetric(ingest.metricsUrl, METRIC, LABELS);
    expect(noticedAt).toBeGreaterThan(killedAt);
    // Reported also by a process that starts later: the first one may have ended before it was asked.
    await ingest.kill("SIGKILL");
    await start();
    const restartedAt = Date.now() * 1_000;
    await until("the topic is looked at again", PATIENCE_MS, claimsAllUntil(restartedAt));
    expect(await readMetric(ingest.metricsUrl, METRIC, LABELS)).toBe(noticedAt);
  });

  it.each(PAUSES)("%s: reads all of the new one, and claims nothing before", async (_, pause) => {
    round += 1;
    await send("former", BEFORE);
    // Stored with the id of the former topic, with which the new one's is compared.
    await until("the former topic is said to be readable", PATIENCE_MS, claimsAllUntil(Date.now() * 1_000));
    if (pause.at !== null) {
      const [table, side] = pause.at;
      gate.arm(new Map([[table, { nth: 1, side }]]));
      await send("more", MORE);
      await until("ingest is caught", PATIENCE_MS, () => gate.caught().has(table));
    }
    if (pause.by === "SIGKILL") await ingest.kill("SIGKILL");
    else await stopProcess(ingest.pid);
    if (pause.unread === true) await send("unread", MORE);
    // Nothing shows from outside that the broker has answered.
    if (pause.heldFetch === undefined) await sleep(3 * FETCH_WAIT_MS);
    const stoodStillAt = Date.now() / 1_000;
    const ends = (await system.admin.fetchOffsets(TOPIC)).map(({ end }) => end);
    await createAnew();
    const count = system.partitions * (Math.max(...ends) + BEYOND);
    await send("new", count);
    const sentAt = Date.now() * 1_000;
    gate.release();
    if (pause.by === "SIGKILL") await start();
    else process.kill(ingest.pid, "SIGCONT");

    await until("all of the new topic is said to be readable", PATIENCE_MS, claimsAllUntil(sentAt));
    expect(await countOf("new")).toBe(count);
    await system.caughtUp(PATIENCE_MS);
    expect(await readMetric(ingest.metricsUrl, METRIC, LABELS)).toBeGreaterThan(stoodStillAt);
  });

  it("is shown by doctor", async () => {
    const env = { ...system.environment("jobs"), CLICKHOUSE_URL: system.stack.clickhouse.url("migrator") };
    const found = await ops(env, "doctor", "--json").catch((error: { stdout: string }) => error.stdout);
    expect(found).toContain("was deleted and created anew: noticed at");
  });
});
