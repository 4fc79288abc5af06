import { fileURLToPath } from "node:url";
import { type BackfillData, backfillJob, type JobClient } from "@conversation-export/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fold, type Folded } from "../reference/index.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { createDelivery } from "../system/deliver.ts";
import { NO_SCHEDULES } from "../system/no-schedules.ts";
import { resultOfJob, startJobClient, workOff } from "../system/operator-jobs.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { createSample } from "../sample/index.ts";

const CLIENTS = ["acme", "globex"];
const TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"];
const PLANT = fileURLToPath(new URL("../faults/plant.ts", import.meta.url));
const MINUTE = bySize(60_000, 600_000);
const JOBS = { ...NO_SCHEDULES, BACKFILL_PART_EVENTS: bySize("100", "5000"), JOB_LOCK_MS: "2000" };
const EVERYTHING = backfillJob.data.parse({ source: { kind: "landing" }, maxLag: 1_000 });

let system: System;
let client: JobClient;
let folded: Folded;
const keys = new Map<string, string>();

/** Ends the half minute that readers wait for a killed process's batch; nothing depends on it. */
const forgetBatchesInFlight = (): Promise<string> =>
  system.sql(`INSERT INTO coordination SELECT name, toUnixTimestamp64Micro(now64(6)), 0 FROM coordination
    WHERE startsWith(name, 'stamp of ') GROUP BY name`);
/** Comparable only while no merge removes superseded rows. */
const physicalRows = (): Promise<string[]> =>
  // A hash over a NULL column is NULL.
  Promise.all(
    TABLES.map((table) =>
      system.sql(`SELECT cityHash64(toString(tuple(*))) AS row FROM ${table} ORDER BY row`),
    ),
  );

beforeAll(async () => {
  system = await startSystem("backfill");
  client = await startJobClient(system.stack.redis.url);
  for (const one of CLIENTS) keys.set(one, await system.key(one));
  // Extends landing back to before the sample.
  await system.sql(`INSERT INTO landing (topic, partition, offset, type, client_id, record_id, payload, uploaded_at, expires_on)
    SELECT 'conversations', 9, 0, 'none', 'none', 'none', '', '2026-09-01 00:00:00', today() + 30`);
  const delivery = createDelivery(system);
  const [ingest] = await Promise.all([
    system.service("ingest", { NODE_OPTIONS: `--import=${PLANT}` }),
    system.service("export-api"),
  ]);
  await delivery.send(
    createSample({
      seed: seedOfRun("backfill"),
      conversations: bySize(150, 14_000),
      clients: CLIENTS,
      endUsers: bySize(30, 500),
      nonstandardShare: 0.15,
      lateShare: 0.1,
      // A record that only a bug accepts may be dated before landing begins: it would stay.
      poisonShare: 0,
    }),
  );
  await system.caughtUp(MINUTE);
  await ingest.kill("SIGTERM");
  folded = fold(delivery.delivered);
});
afterAll(async () => {
  await client?.stop();
  await system?.stop();
});

const backfill = (data: BackfillData) => workOff(client, backfillJob, data);
const compare = () => compareExports(system.apiUrl, folded, keys);
const sum = (rows: Readonly<Record<string, number>>): number =>
  Object.values(rows).reduce((a, b) => a + b, 0);

test("bugs that ingest had are gone from all records after a backfill, whose worker is killed twice", async () => {
  expect((await compare()).length).toBeGreaterThan(0);
  await system.sql("SYSTEM STOP MERGES");
  const before = await physicalRows();
  let jobs = await system.service("jobs", JOBS);
  const tried = await backfill({ ...EVERYTHING, dryRun: true });
  expect(tried.dryRun).toBe(true);
  expect(tried.records.different).toBeGreaterThan(50);
  expect(tried.rows.deleted.conversations).toBeGreaterThan(10);
  expect(tried.rows.deleted.handoffs).toBeGreaterThan(10);
  expect(sum(tried.rows.undeletable)).toBe(0);
  expect(await physicalRows()).toEqual(before);
  await system.sql("SYSTEM START MERGES");

  const { id } = await client.add(backfillJob, EVERYTHING);
  for (const share of [0.1, 0.5]) {
    await until("parts are done", MINUTE, async () => {
      const parts = (await client.get("backfill", id))?.parts;
      return parts !== null && parts !== undefined && parts.done >= parts.total * share;
    });
    await jobs.kill("SIGKILL");
    await forgetBatchesInFlight();
    jobs = await system.service("jobs", JOBS);
  }
  const done = await resultOfJob(client, backfillJob, id);
  expect(done.parts).toBeGreaterThan(5);
  expect(done.events.rejected).toBe(0);
  expect(await compare()).toEqual([]);

  await system.sql("SYSTEM STOP MERGES");
  const right = await physicalRows();
  const again = await backfill(EVERYTHING);
  expect(again.records.different).toBe(0);
  expect(await physicalRows()).toEqual(right);
  await system.sql("SYSTEM START MERGES");
  for (const table of TABLES) await system.sql(`OPTIMIZE TABLE ${table} FINAL`);
  expect(await compare()).toEqual([]);
});
