import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  type BackfillData,
  type BackfillResult,
  backfillJob,
  type JobClient,
} from "@conversation-export/queue";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type Delivered, fold, type Folded } from "../reference/index.ts";
import { compareExports } from "../compare/compare-exports.ts";
import { createDelivery } from "../system/deliver.ts";
import { type ObjectStore, startObjectStore } from "../outside/object-store.ts";
import { preparePythonTools } from "../outside/python-tools.ts";
import { resultOfJob, startJobClient, workOff } from "../system/operator-jobs.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { handMade } from "../sample/hand-made.ts";
import { type BusEvent, createSample } from "../sample/index.ts";

const CLIENTS = ["acme", "globex"];
const TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users", "landing"];
const BASE = backfillJob.data.parse({ source: { kind: "kafka" } });

let system: System;
let objects: ObjectStore;
let client: JobClient;
let delivered: readonly Delivered[];
let poison = 0;
let folded: Folded;
let env: Record<string, string>;
const keys = new Map<string, string>();

const rows = (): Promise<string[]> =>
  Promise.all(TABLES.map((table) => system.sql(`SELECT cityHash64(*) AS row FROM ${table} ORDER BY row`)));
const compare = () => compareExports(system.apiUrl, folded, keys);

beforeAll(async () => {
  [system] = await Promise.all([startSystem("backfill-sources"), preparePythonTools("s3")]);
  [objects] = await Promise.all([
    startObjectStore(join(system.logFolder, "s3.log")),
    system.service("export-api"),
  ]);
  client = await startJobClient(system.stack.redis.url);
  for (const one of CLIENTS) keys.set(one, await system.key(one));
  const events: BusEvent[] = [
    ...createSample({
      seed: seedOfRun("backfill-sources"),
      conversations: bySize(120, 5_000),
      clients: CLIENTS,
      endUsers: 20,
      nonstandardShare: 0.1,
      lateShare: 0.1,
    }),
  ];
  poison = events.filter((event) => event.poison).length;
  const delivery = createDelivery(system);
  await delivery.send(events);
  delivered = delivery.delivered;
  folded = fold(delivered);
  env = {
    AWS_ENDPOINT_URL_S3: objects.endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    JOB_LOCK_MS: "2000",
    BACKFILL_LOCATIONS: `${system.logFolder},s3://exports/day,s3://none,/no/such`,
  };
});

beforeEach(async () => {
  for (const table of TABLES) await system.sql(`TRUNCATE TABLE ${table}`);
});

afterAll(async () => {
  await client?.stop();
  await objects?.stop();
  await system?.stop();
});

const backfill = (data: Partial<BackfillData>): Promise<BackfillResult> =>
  workOff(client, backfillJob, { ...BASE, ...data });

const lineOf = ({ event, partition, offset }: Delivered): string => {
  const { headers } = event;
  const text = Buffer.from(event.value ?? []).toString();
  const place = `"partition":${partition},"offset":"${offset}",`;
  if (headers["ce_specversion"] === undefined) return text.replace("{", `{${place}`).replaceAll("\n", " ");
  const attributes = Object.entries(headers)
    .filter(([name]) => name.startsWith("ce_"))
    .map(([name, value]) => `${JSON.stringify(name.slice(3))}:${JSON.stringify(String(value))},`);
  return `{${place}${attributes.join("")}"data":${text.replaceAll("\n", " ")}}`;
};

it("puts what is on the bus into an empty warehouse, also when its worker is killed; once more changes nothing", async () => {
  let jobs = await system.service("jobs", env);
  const dry = await backfill({ dryRun: true });
  expect(await rows()).toEqual(TABLES.map(() => ""));

  const { id } = await client.add(backfillJob, BASE);
  for (const table of bySize(["landing"], ["landing", "messages"])) {
    await until("rows", 60_000, async () => (await system.sql(`SELECT count() FROM ${table}`)) !== "0");
    await jobs.kill("SIGKILL");
    jobs = await system.service("jobs", env);
  }
  const done = await resultOfJob(client, backfillJob, id);
  expect(done.events).toEqual(dry.events);
  expect(done.events).toMatchObject({ read: delivered.length, rejected: poison });
  expect(await compare()).toEqual([]);

  const before = await rows();
  for (const dryRun of [true, false]) {
    const again = await backfill({ dryRun });
    expect(again.records).toEqual({ examined: dry.records.examined, different: 0 });
  }
  expect(await rows()).toEqual(before);

  const corrected = await backfill({ source: { kind: "landing" } });
  expect(corrected.records.different).toBe(0);
  expect(corrected.records.examined).toBeGreaterThan(100);

  for (const table of TABLES) await system.sql(`TRUNCATE TABLE ${table}`);
  const one = await backfill({
    window: { by: "offsets", topic: "messages", ranges: [{ partition: 1, from: 3, to: 9 }] },
  });
  expect(one.events.read).toBe(6);
  const later = { from: "2200-01-01T00:00:00Z", to: "2200-01-02T00:00:00Z" };
  expect((await backfill({ window: { by: "upload", ...later } })).parts).toBe(0);
  await jobs.kill("SIGTERM");
});

it("puts files and objects into an empty warehouse, tells bad lines, and lets the landing table correct them later", async () => {
  const jobs = await system.service("jobs", env);
  const nullValues = delivered.filter(({ event }) => event.value === null);
  const good = delivered.filter(({ event }) => event.value !== null && !(event as BusEvent).poison);
  const lines = good.map(lineOf);
  const part = (index: number): Buffer =>
    Buffer.from(
      lines
        .filter((_, at) => at % 4 === index)
        .map((line) => `${line}\n`)
        .join(""),
    );
  const folder = join(system.logFolder, "files");
  mkdirSync(folder);
  writeFileSync(join(folder, "a.ndjson"), part(0));
  writeFileSync(join(folder, "b.json.gz"), gzipSync(Buffer.concat([Buffer.from("not json\n"), part(1)])));
  await objects.put("exports");
  await objects.put("exports/day/c.ndjson.gz", gzipSync(part(2)));
  await objects.put("exports/day/sub/d.ndjson.zst", zstdCompressSync(part(3)));
  await objects.put("exports/other.ndjson", Buffer.from("not json\n"));

  const ofFolder = { source: { kind: "files", location: folder } } as const;
  const ofObjects = { source: { kind: "files", location: "s3://exports/day/" } } as const;
  const files = await backfill(ofFolder);
  expect(files.events.rejected).toBe(1);
  expect(files.problems).toMatchObject([
    { place: `${join(folder, "b.json.gz")}:1`, reason: "invalid_envelope" },
  ]);
  const fromObjects = await backfill(ofObjects);
  expect(fromObjects.events.rejected).toBe(0);
  expect(files.events.read + fromObjects.events.read).toBe(good.length + 1);
  expect(nullValues.length + good.length + poison).toBe(delivered.length);
  expect(await compare()).toEqual([]);

  const before = await rows();
  for (const source of [ofFolder, ofObjects, { source: { kind: "landing" } } as const]) {
    expect((await backfill(source)).records.different).toBe(0);
  }
  expect(await rows()).toEqual(before);

  await expect(backfill({ source: { kind: "files", location: "s3://none/x" } })).rejects.toThrow(
    "cannot read",
  );
  await expect(backfill({ source: { kind: "files", location: "/no/such/folder" } })).rejects.toThrow(
    "ENOENT",
  );
  for (const location of ["s3://exports/other.ndjson", "s3://of-the-attacker/x", "/etc"]) {
    await expect(backfill({ source: { kind: "files", location } })).rejects.toThrow("source_not_allowed");
  }
  await jobs.kill("SIGTERM");
});

it("keeps the later of two lines with one time and no position, in every list", async () => {
  const jobs = await system.service("jobs", env);
  const line = (language: string, updated: string): string =>
    `${JSON.stringify({
      specversion: "1.0",
      id: language,
      source: "/test",
      type: "conversation.exported",
      time: "2026-10-20T12:00:00Z",
      clientid: "acme",
      data: { _id: "twice", date_created: "2026-10-20T00:00:00Z", date_updated: updated, language },
    })}\n`;
  const folder = join(system.logFolder, "twice");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "a.ndjson"),
    line("first", "2026-10-20T02:00:00Z") + line("later", "2026-10-20T01:00:00Z"),
  );
  const read = async (filter: string): Promise<unknown[]> => {
    const url = `${system.apiUrl}/v2/export/conversations?${filter}=2026-10-20T00:00:00Z`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${keys.get("acme")}` } });
    const { data } = (await response.json()) as { data: { language: string }[] };
    return data.map(({ language }) => language);
  };
  for (let times = 0; times < 2; times += 1) {
    await backfill({ source: { kind: "files", location: folder } });
    expect(await read("created_since")).toEqual(["later"]);
    expect(await read("updated_since")).toEqual(["later"]);
  }
  await jobs.kill("SIGTERM");
});

it("counts what it stores for a client that is not registered", async () => {
  const jobs = await system.service("jobs", env);
  const folder = join(system.logFolder, "unregistered");
  mkdirSync(folder);
  const time = "2026-10-20T12:00:00Z";
  const data = { end_user_id: "u", created_at: time };
  const event = handMade({ kind: "end_user", client: "Acme", id: "u", time, data });
  writeFileSync(join(folder, "a.ndjson"), `${String(event.value)}\n`);
  const { records } = await backfill({ source: { kind: "files", location: folder } });
  expect(records.different).toBe(1);
  expect(await system.sql("SELECT client_id, records FROM unregistered_clients FORMAT CSV")).toBe('"Acme",1');
  await jobs.kill("SIGTERM");
});
