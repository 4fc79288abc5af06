import { createGroupProgress } from "@conversation-export/bus";
import type { ListName } from "@conversation-export/domain";
import { choosePorts } from "@conversation-export/local-stack";
import { createLogger } from "@conversation-export/runtime";
import { createWatermarkStore, type WatermarkReader } from "@conversation-export/warehouse";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { handMade } from "../sample/hand-made.ts";
import { readMetric } from "../system/metrics-text.ts";
import { type ServiceProcess, startService } from "../system/service-process.ts";
import { bySize } from "../system/size.ts";
import { GROUP, startSystem, type System, TOPICS } from "../system/system.ts";
import { until, untilItWorks } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";
import { createSessions } from "../system/warehouse-sessions.ts";

const INGEST_ENV = {
  WATERMARK_INTERVAL_MS: "200",
  BATCH_MAX_AGE_MS: "50",
  // A killed process's partitions wait this long.
  KAFKA_SESSION_TIMEOUT_MS: "3000",
};
const LISTS = {
  conversation: "conversations",
  message: "messages",
  end_user: "end_users",
} as const satisfies Record<keyof typeof TOPICS, ListName>;
type Kind = keyof typeof LISTS;

const nowMicros = (): number => Date.now() * 1000;
const log = createLogger({ service: "test", level: "error" });

describe("the watermark", () => {
  let system: System;
  let reader: WatermarkReader;
  let ingest: ServiceProcess;
  let key: string;
  let sent = 0;
  const sessions = createSessions();

  beforeAll(async () => {
    system = await startSystem("test-watermark");
    reader = createWatermarkStore({ session: sessions.open(system.stack.clickhouse.url("lookup")) });
    await system.service("export-api");
    key = await system.key("acme");
  });
  afterAll(async () => {
    await sessions.close();
    await system?.stop();
  });

  const watermark = async (kind: Kind): Promise<number> => (await reader.load())[LISTS[kind]] ?? 0;
  const passes = (kind: Kind, instant: number): Promise<void> =>
    until(
      `the watermark of ${kind} passes ${instant}`,
      60_000,
      async () => (await watermark(kind)) > instant,
    );

  const send = async (kind: Kind, count: number): Promise<{ ids: string[]; sentBy: number }> => {
    const events = Array.from({ length: count }, () => {
      const id = `${kind}-${(sent += 1)}`;
      const data = {
        [kind === "end_user" ? "end_user_id" : "_id"]: id,
        [kind === "end_user" ? "created_at" : "date_created"]: "2026-10-04T12:00:00Z",
        conversation_id: "one",
      };
      return handMade({ kind, client: "acme", id, time: new Date().toISOString(), data });
    });
    await system.producer.send(
      TOPICS[kind],
      events.map(({ key: of, value }, index) => ({ key: of, value, partition: index % system.partitions })),
    );
    return { ids: events.map(({ key: of }) => of.slice("acme:".length)), sentBy: nowMicros() + 1_000 };
  };
  const readable = async (kind: Kind): Promise<Set<string>> => {
    const [table, column] = {
      conversation: ["conversations", "conversation_id"],
      message: ["messages", "message_id"],
      end_user: ["end_users", "end_user_id"],
    }[kind];
    const text = await runSql(
      system.stack.clickhouse.url("reader"),
      `SELECT DISTINCT ${column} FROM ${table}`,
    );
    return new Set(text.split("\n"));
  };
  const header = async (): Promise<string | null> => {
    const address = `${system.apiUrl}/v2/export/conversations?created_since=2026-10-01T00:00:00Z`;
    const response = await fetch(address, { headers: { authorization: `Bearer ${key}` } });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    return response.headers.get("x-export-watermark");
  };

  it("is absent while nothing is known", async () => {
    expect(await reader.load()).toEqual({});
    expect(await header()).toBeNull();
  });

  it("comes with ingest, on empty topics too, and passes what was read", async () => {
    const before = nowMicros();
    ingest = await system.service("ingest", INGEST_ENV);
    for (const kind of ["conversation", "message", "end_user"] as const) await passes(kind, before);
    const { ids, sentBy } = await send("conversation", 300);
    await passes("conversation", sentBy);
    expect(await readable("conversation")).toEqual(new Set([...ids, ""]));
    await until("the header says so", 10_000, async () => {
      const text = await header();
      return text !== null && Date.parse(text) * 1000 > sentBy;
    });
    expect(
      await readMetric(ingest.metricsUrl, "conversation_export_ingest_watermark_age_seconds", {
        topic: "messages",
      }),
    ).toBeLessThan(30);
  });

  it("stays before what the warehouse has not taken, list by list", async () => {
    await system.caughtUp(30_000);
    await system.sql("RENAME TABLE conversations TO hidden");
    const held = await send("conversation", 30);
    const message = await send("message", 30);
    await passes("message", message.sentBy);
    await until("inserts are tried again", 30_000, async () => {
      return (
        ((await readMetric(ingest.metricsUrl, "conversation_export_ingest_flush_retries_total")) ?? 0) > 2
      );
    });
    const before = await watermark("conversation");
    expect(before).toBeLessThan(held.sentBy);
    await passes("message", nowMicros());
    expect(await watermark("conversation")).toBe(before);
    await system.sql("RENAME TABLE hidden TO conversations");
    await passes("conversation", message.sentBy);
    expect([...(await readable("conversation"))]).toEqual(expect.arrayContaining(held.ids));
  });

  it("keeps its value while ingest is stopped, and goes on after it", async () => {
    await system.caughtUp(30_000);
    await ingest.kill("SIGTERM");
    expect(await ingest.exited).toEqual({ code: 0, signal: null });
    const kept = await reader.load();
    const { ids, sentBy } = await send("end_user", 30);
    await until("the clock goes on", 5_000, () => nowMicros() > sentBy + 1_000_000);
    expect(await reader.load()).toEqual(kept);
    expect(kept.end_users).toBeLessThan(sentBy);
    ingest = await system.service("ingest", INGEST_ENV);
    await passes("end_user", sentBy);
    expect([...(await readable("end_user"))]).toEqual(expect.arrayContaining(ids));
  });

  it("claims nothing unreadable and never falls, with replicas that come, die and replay", async () => {
    const { second } = await choosePorts({ names: ["second"], fixed: {} });
    const replica = startService("ingest", {
      metricsPort: second,
      logFile: join(system.logFolder, "ingest-second.log"),
      env: { ...system.environment("ingest"), ...INGEST_ENV },
    });
    const batches: { ids: string[]; sentBy: number }[] = [];
    let isOver = false;
    let latest = 0;
    let looks = 0;
    const sending = (async () => {
      while (!isOver) {
        batches.push(await send("message", 60));
        await pause(bySize(100, 20));
      }
    })();
    const watching = (async () => {
      while (!isOver) {
        const claimed = await watermark("message");
        expect(claimed).toBeGreaterThanOrEqual(latest);
        if (claimed > latest) looks += 1;
        latest = claimed;
        const due = batches.filter(({ sentBy }) => sentBy < claimed);
        const there = await readable("message");
        expect(due.flatMap(({ ids }) => ids).filter((id) => !there.has(id))).toEqual([]);
        await pause(50);
      }
    })();
    const trouble = (async () => {
      try {
        await replica.ready();
        await until("both take part", 60_000, async () => {
          return (
            ((await readMetric(replica.metricsUrl, "conversation_export_ingest_rows_written_total")) ?? 0) > 0
          );
        });
        await passes("message", nowMicros());
        await replica.kill("SIGKILL");
        await passes("message", nowMicros());
        await ingest.kill("SIGKILL");
        const ends = await system.admin.fetchOffsets(TOPICS.message);
        const offsets = ends.map(({ partition }) => ({ topic: TOPICS.message, partition, offset: 0 }));
        await untilItWorks("the group is without members", 30_000, () =>
          system.admin.setCommitted(GROUP, offsets),
        );
        ingest = await system.service("ingest", INGEST_ENV);
        await passes("message", nowMicros());
      } finally {
        isOver = true;
      }
    })();
    await Promise.all([sending, watching, trouble]);
    expect(looks).toBeGreaterThan(3);
  });

  it("sees partitions that came later, and no commits of a topic that is gone", async () => {
    const topic = "made-again";
    const group = "made-again";
    const brokers = system.stack.kafka.brokers;
    const progress = createGroupProgress({ brokers, clientId: "test", log, groupId: group });
    await progress.start();
    try {
      await system.admin.createTopics([{ topic, partitions: 2 }]);
      await system.producer.send(topic, [{ key: "a", value: Buffer.from("a"), partition: 1 }]);
      const first = await progress.fetch(topic);
      expect(first.partitions).toEqual([
        { partition: 0, start: 0, end: 0, committed: null },
        { partition: 1, start: 0, end: 1, committed: null },
      ]);
      await system.admin.setCommitted(group, [
        { topic, partition: 0, offset: 9 },
        { topic, partition: 1, offset: 1 },
      ]);
      const committed = async () => (await progress.fetch(topic)).partitions.map((one) => one.committed);
      expect(await committed()).toEqual([null, 1]);
      await system.admin.deleteTopics([topic]);
      await until("the topic is made again", 30_000, async () => {
        await system.admin.createTopics([{ topic, partitions: 3 }]);
        const { topicId, partitions } = await progress.fetch(topic);
        return topicId !== first.topicId && partitions.length === 3;
      });
      expect(await committed()).toEqual([null, null, null]);
    } finally {
      await progress.stop();
    }
  });
});
