import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fold } from "../reference/index.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { createDelivery } from "../system/deliver.ts";
import { readMetric } from "../system/metrics-text.ts";
import { ROWS_WITHOUT_DATE } from "../system/record-dates.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { type ServiceProcess } from "../system/service-process.ts";
import { startSystem, type System, TOPICS } from "../system/system.ts";
import { until } from "../system/until.ts";
import { createSample } from "../sample/index.ts";
import { stopProcess } from "../system/stop-process.ts";

const CLIENTS = ["acme", "globex"];
const KILLS = bySize(2, 10);
const CONVERSATIONS = bySize(1_200, 42_000);

/** Small batches, so that a kill meets every step of many of them. */
const INGEST_ENV = {
  BATCH_MAX_RECORDS: "1000",
  BATCH_MAX_AGE_MS: "100",
  // A killed process's partitions wait this long.
  KAFKA_SESSION_TIMEOUT_MS: "3000",
};

const pidOf = (server: { readonly pid: number | undefined }): number => {
  if (server.pid === undefined) throw new Error("the server does not run");
  return server.pid;
};

describe("ingest that is killed and replayed", () => {
  let system: System;
  let seed: string;
  const keys = new Map<string, string>();

  beforeAll(async () => {
    seed = seedOfRun("crash");
    system = await startSystem("test-crash");
    await system.service("export-api");
    for (const client of CLIENTS) keys.set(client, await system.key(client));
  });
  afterAll(() => system?.stop());

  it("exports every record once, at its latest version, whenever the process dies", async () => {
    const sample = createSample({
      seed,
      conversations: CONVERSATIONS,
      messagesPerConversation: 3,
      clients: CLIENTS,
    });
    const delivery = createDelivery(system);
    let ingest: ServiceProcess = await system.service("ingest", INGEST_ENV);

    const total = sample.totals().events;
    const sending = delivery.send(sample);
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const from = (total * (kill - 1)) / (KILLS + 1);
      await until(`ingest gets on (kill ${kill})`, 120_000, async () => (await system.committed()) > from);
      await sleep(Math.random() * 200);
      await ingest.kill("SIGKILL");
      expect(await system.sql(ROWS_WITHOUT_DATE), `kill ${kill}`).toBe("");
      ingest = await system.service("ingest", INGEST_ENV);
    }
    await sending;

    // Stops between insert and commit: ClickHouse hangs until everything is read, then Kafka does.
    await system.caughtUp(300_000);
    const taken = () =>
      readMetric(ingest.metricsUrl, "conversation_export_ingest_records_consumed_total", {
        topic: TOPICS.conversation,
      });
    const takenBefore = (await taken()) ?? 0;
    await stopProcess(pidOf(system.stack.clickhouse));
    await delivery.send(createSample({ seed: `${seed}-tail`, conversations: 300, clients: CLIENTS }));
    const sent = delivery.delivered.length;
    // Some of that many are no dead letters.
    await until("ingest holds conversations", 60_000, async () => ((await taken()) ?? 0) > takenBefore + 50);
    await stopProcess(pidOf(system.stack.kafka));
    const written = () =>
      readMetric(ingest.metricsUrl, "conversation_export_ingest_rows_written_total", {
        table: "conversations",
      });
    const writtenBefore = (await written()) ?? 0;
    process.kill(pidOf(system.stack.clickhouse), "SIGCONT");
    await until("conversations are written", 60_000, async () => ((await written()) ?? 0) > writtenBefore);
    await ingest.kill("SIGKILL");
    expect(await system.sql(ROWS_WITHOUT_DATE)).toBe("");
    process.kill(pidOf(system.stack.kafka), "SIGCONT");
    await until("the bus answers", 60_000, async () => (await system.committed()) < sent);
    ingest = await system.service("ingest", INGEST_ENV);
    await system.caughtUp(120_000);

    const expected = fold(delivery.delivered);
    expect(await compareExports(system.apiUrl, expected, keys)).toEqual([]);

    const deadLetters = await system.admin.fetchOffsets("conversations.dead-letter");
    const rejected = expected.rejected.filter(({ topic }) => topic === "conversations").length;
    const dead = deadLetters.reduce((sum, { start, end }) => sum + end - start, 0);
    expect(dead, "every rejected record waits in the dead letters").toBeGreaterThanOrEqual(rejected);

    await ingest.kill("SIGTERM");
    expect(await ingest.exited).toEqual({ code: 0, signal: null });
    ingest = await system.service("ingest", { ...INGEST_ENV, KAFKA_GROUP_ID: "replay" });
    await system.caughtUp(300_000, "replay");
    expect(await compareExports(system.apiUrl, expected, keys)).toEqual([]);
    await ingest.kill("SIGTERM");
  });
});
