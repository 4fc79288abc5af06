import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareExports } from "../compare/compare-exports.ts";
import { createRestlessReaders, EVER, type RestlessReaders } from "../compare/restless-readers.ts";
import { walk } from "../compare/walk.ts";
import { type Replication, startReplication } from "../faults/replication.ts";
import { fold } from "../reference/index.ts";
import { handMade } from "../sample/hand-made.ts";
import { createRandom, type Random } from "../sample/values/random.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { ops } from "../system/ops.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { clusterVariables } from "../system/shards.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

const CLIENT = "acme";
const RECORDS = bySize(1_000, 5_000);
const LOAD_MS = bySize(30_000, 300_000);
const DEADLINE_MS = 60_000;
const INGEST = { BATCH_MAX_RECORDS: "200", BATCH_MAX_AGE_MS: "100", WATERMARK_INTERVAL_MS: "300" };

let system: System;
let random: Random;
let replication: Replication;
let delivery: Delivery;
let readers: RestlessReaders;
let key: string;
let ingest: ServiceProcess;

beforeAll(async () => {
  const seed = seedOfRun("replicas");
  random = createRandom(seed, "replicas");
  system = await startSystem("test-replicas", { shards: 2, areReplicas: true });
  const { stack } = system;
  await runSql(stack.clickhouse.url("migrator"), "SYSTEM STOP MERGES");
  key = await system.key(CLIENT, ["export", "end_users"]);
  const [first, second] = stack.clickhouseShards;
  if (first === undefined || second === undefined) throw new Error("there are no two servers");
  replication = await startReplication({
    servers: [first.url("migrator"), second.url("migrator")],
    delayOf: () => random.int(random.chance(0.2) ? 1_500 : 200),
  });
  await replication.complete();
  delivery = createDelivery(system);
  readers = createRestlessReaders({ system, delivery, random, seed, client: CLIENT, key, records: RECORDS });
  const jobs = { ...NO_SCHEDULES, CLICKHOUSE_URL: replication.through(stack.clickhouse.url("jobs")) };
  ingest = await system.service("ingest", {
    ...INGEST,
    CLICKHOUSE_URL: replication.through(stack.clickhouse.url("writer")),
  });
  await Promise.all([system.service("export-api"), system.service("jobs", jobs)]);
  await readers.begin();
});
afterAll(async () => {
  await Promise.allSettled([replication?.close()]);
  await system?.stop();
});

describe("replicas that are behind each other, every INSERT acknowledged by all", () => {
  it("hide nothing behind a watermark, whichever of them a statement reads", async () => {
    const { events, walks, compared } = await readers.load(LOAD_MS);
    await system.caughtUp(DEADLINE_MS);
    await readers.settle();
    expect(await compareExports(system.apiUrl, fold(delivery.delivered), new Map([[CLIENT, key]]))).toEqual(
      [],
    );
    console.log(`${events} events, ${walks} walks by creation, ${compared} records compared under load`);
    expect(walks).toBeGreaterThan(0);
    expect(compared).toBeGreaterThan(0);
  });

  it("hide records behind a watermark when one server acknowledges alone, and doctor warns of it", async () => {
    await ingest.kill("SIGTERM");
    await replication.pause();
    await system.another("ingest", INGEST);
    await delivery.send([
      handMade({
        kind: "conversation",
        client: CLIENT,
        id: "alone",
        time: new Date().toISOString(),
        data: { _id: "alone", date_created: "2026-10-20T12:00:00Z" },
      }),
    ]);
    const by = Date.now();
    await until(
      "the watermark passes",
      DEADLINE_MS,
      async () => (await readers.watermarkOf("conversations")) > by,
    );
    const url = `${system.apiUrl}/v2/export/conversations?${EVER.replace("1970-01-01", "2026-10-20")}`;
    const reads = async (): Promise<boolean[]> => {
      const found: boolean[] = [];
      for (let read = 0; read < 30; read += 1)
        found.push((await walk(url, key)).some((text) => text.includes('"alone"')));
      return found;
    };
    // ClickHouse avoids a server that failed once, for a minute or more.
    await until("a read meets the server behind", DEADLINE_MS, async () => (await reads()).includes(false));
    replication.resume();
    await replication.complete();
    expect(await reads()).not.toContain(false);

    const { stack } = system;
    const variables = {
      ...clusterVariables(stack),
      ...system.environment("jobs"),
      CLICKHOUSE_URL: stack.clickhouse.url("migrator"),
      CLICKHOUSE_WRITER_URL: stack.clickhouse.url("writer"),
    };
    const { CLICKHOUSE_SHARD_URLS: _, ...keeper } = variables as Readonly<Record<string, string>>;
    const doctor = (given: Readonly<Record<string, string>>): Promise<string> =>
      ops(given, "doctor").catch((error: { stdout?: string }) => error.stdout ?? "");
    // As if there were a Keeper: the servers show only that they are replicas.
    expect(await doctor(keeper)).toMatch(/warning +ClickHouse +replicas of writer +insert_quorum is 0/);
    expect(await doctor(variables)).toMatch(
      /problem +ClickHouse +replicas +shards have 2 replicas, and CLICKHOUSE_SHARD_URLS/,
    );
    expect(await doctor({ ...keeper, CLUSTER: "nowhere" })).toMatch(
      /problem +ClickHouse +replicas +this server has no cluster of the name in CLUSTER/,
    );
  });
});
