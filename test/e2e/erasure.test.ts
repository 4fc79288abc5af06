import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  backfillJob,
  createJobClient,
  type JobClient,
  type JobType,
  reconcileJob,
} from "@conversation-export/queue";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { BusEvent } from "../sample/index.ts";
import { createDelivery, type Delivery } from "../system/deliver.ts";
import { handMade } from "../sample/hand-made.ts";
import { createChangeFollower } from "../compare/change-follower.ts";
import { findInActiveParts } from "../compare/part-bytes.ts";
import type { ServiceProcess } from "../system/service-process.ts";
import { redisCommand } from "../system/redis-command.ts";
import { startSystem, type System } from "../system/system.ts";
import { until } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";
import { runSql } from "../system/warehouse-sql.ts";

const CLIENT = "acme";
const LISTS = ["conversations", "messages", "end_users"] as const;
const CREATED = "2026-10-04T00:00:00Z";
const ENV = { WRITER_LEASE_MS: "2000", ERASURE_INTERVAL_SECONDS: "1" };

let system: System;
let delivery: Delivery;
let ingest: ServiceProcess;
let jobs: ServiceProcess;
let key: string;
let client: JobClient;

const sql = (statement: string) => runSql(system.stack.clickhouse.url("migrator"), statement);

beforeAll(async () => {
  system = await startSystem("erasure");
  delivery = createDelivery({ producer: system.producer, partitions: system.partitions });
  client = createJobClient({
    url: system.stack.redis.url,
    log: createLogger({ service: "test", level: "error" }),
  });
  await client.start();
  key = await system.key(CLIENT, ["export", "end_users", "compliance"]);
  [ingest, jobs] = await Promise.all([
    system.service("ingest", ENV),
    system.service("jobs", ENV),
    system.service("export-api"),
  ]);
});

afterAll(async () => {
  await client?.stop();
  await system?.stop();
});

const startedAt = Date.now();
let exported = 0;
const event = (kind: BusEvent["kind"], id: string, data: Record<string, unknown>): BusEvent => {
  exported += 1;
  const time = new Date(Date.UTC(2026, 9, 5) + exported * 1_000).toISOString();
  const own =
    kind === "end_user" ? { end_user_id: id, created_at: CREATED } : { _id: id, date_created: CREATED };
  return handMade({ kind, client: CLIENT, id, time, data: { ...own, ...data } });
};

/** One person, in all lists. */
const person = (name: string): BusEvent[] => [
  event("end_user", `${name}-user`, { profile: { email: `${name}@example.com`, first_name: name } }),
  event("conversation", `${name}-1`, {
    chatter_id: `${name}-chatter`,
    end_user_id: `${name}-user`,
    handoffs: [{ id: `${name}-h`, handoff_id: null, date_created: CREATED, reasoning: `${name} asked` }],
  }),
  event("message", `${name}-1-1`, { conversation_id: `${name}-1`, chatter_id: `${name}-chatter` }),
  event("message", `${name}-1-2`, {
    conversation_id: `${name}-1`,
    message_data: { _type: "text", body: name },
  }),
];

const get = async (path: string): Promise<string> => {
  const answer = await fetch(`${system.apiUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
  expect(answer.status, path).toBe(200);
  return answer.text();
};

/** All that the client can read, without upload instants. */
const readAll = async (): Promise<string> => {
  const window = "created_since=2026-01-01T00:00:00Z&created_to=2027-01-01T00:00:00Z";
  const updated = window.replaceAll("created", "updated");
  const pages = await Promise.all(
    [
      `/v2/export/conversations?${window}`,
      `/v2/export/conversations?${updated}`,
      `/v2/export/messages?${window}`,
      "/v2/end-users/",
    ].map(get),
  );
  return pages.join("\n").replace(/"record_last_updated":"[^"]*"/g, "");
};

type Receipt = { readonly deleted_rows: Readonly<Record<string, number>> };

/** Sends a request; returns the address of its status. */
const request = async (body: Record<string, unknown>): Promise<string> => {
  const answer = await fetch(`${system.apiUrl}/v2/data-subject-request`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ type: "ERASURE", ...body }),
  });
  expect(answer.status).toBe(200);
  return new URL(answer.headers.get("location") ?? "", system.apiUrl).pathname.replace(/^\/api/, "");
};

const statusAt = async (address: string): Promise<{ readonly status: string; readonly receipt?: Receipt }> =>
  JSON.parse(await get(address)) as { status: string; receipt?: Receipt };

const completed = (address: string): Promise<void> =>
  until("the request is completed", 60_000, async () => {
    const { status, receipt } = await statusAt(address);
    expect(status).not.toBe("failed");
    if (status !== "completed") return false;
    expect(receipt?.deleted_rows).toBeDefined();
    expect(JSON.stringify(receipt)).not.toMatch(/@|gone|held|hung|hidden/);
    return true;
  });

/** Sends a request and waits until it is completed. */
const erase = async (body: Record<string, unknown>): Promise<void> => {
  const address = await request(body);
  await completed(address);
  const list = JSON.parse(await get("/v2/data-subject-request")) as { data: { request_id: string }[] };
  expect(list.data[0]?.request_id).toBe(address.split("/").at(-1));
  const id = address.split("/").at(-1) ?? "";
  const noted = `SELECT state FROM audit WHERE command = 'erasure' AND arguments LIKE '%${id}%' ORDER BY at FORMAT TSV`;
  await until("the audit tells of it", 10_000, async () => (await sql(noted)).trim() === "begun\ndone");
};

/** Runs a job to its end. */
const work = async <Data, Result>(type: JobType<Data, Result>, data: Data): Promise<Result> => {
  const { id } = await client.add(type, data);
  for await (const view of client.follow(type.name, id)) {
    if (view.state === "failed") throw new Error(String(view.reason));
    if (view.state === "completed") return type.result.parse(view.result);
  }
  throw new Error("the job does not end");
};

const ingestAgain = async (groupId: string): Promise<void> => {
  ingest = await system.service("ingest", { ...ENV, KAFKA_GROUP_ID: groupId });
  await system.caughtUp(groupId, 60_000);
};

it("hides a person from every list before the rows are gone, and tells readers of changes when they are", async () => {
  const before = await readAll();
  await delivery.send(person("hidden"));
  await system.caughtUp("conversation-export-ingest", 60_000);
  const followers = LISTS.map((list) => createChangeFollower({ apiUrl: system.apiUrl, key, list }));
  const heldOfPerson = async (): Promise<number> => {
    for (const follower of followers) await follower.toTheEnd(() => 100).catch(() => undefined);
    return followers.flatMap(({ held }) => [...held.keys()]).filter((id) => id.startsWith("hidden")).length;
  };
  await until("readers of changes hold the records", 30_000, async () => (await heldOfPerson()) === 4);

  // No row is deleted until merges go on.
  await sql("SYSTEM STOP MERGES");
  let address: string;
  try {
    address = await request({ email: "hidden@example.com" });
    await until("no list has the person", 30_000, async () => (await readAll()) === before);
    expect(await sql("SELECT uniqExact(message_id) FROM messages WHERE message_id LIKE 'hidden%'")).toBe(
      "2\n",
    );
    expect((await statusAt(address)).status).not.toBe("completed");
  } finally {
    await sql("SYSTEM START MERGES");
  }
  await completed(address);
  expect(await sql("SELECT count() FROM messages WHERE message_id LIKE 'hidden%'")).toBe("0\n");
  await until("readers of changes hold none of them", 60_000, async () => (await heldOfPerson()) === 0);
});

it("lets no trace come back with a replay of everything and with late events", async () => {
  await delivery.send(person("kept"));
  await system.caughtUp("conversation-export-ingest", 60_000);
  const kept = await readAll();
  await delivery.send(person("gone"));
  await system.caughtUp("conversation-export-ingest", 60_000);
  expect((await readAll()).length).toBeGreaterThan(kept.length);

  await erase({ email: "Gone@example.com" });
  expect(await readAll()).toBe(kept);
  const from = new Date(startedAt).toISOString();
  await work(reconcileJob, { from, to: new Date(startedAt + 1).toISOString(), clientId: CLIENT });

  await ingest.kill("SIGTERM");
  await delivery.send([
    // Under other names, and moved to a conversation that stays.
    event("conversation", "gone-1", { inquiry_summary: "gone again" }),
    event("conversation", "gone-2", { end_user_id: "gone-user", inquiry_summary: "gone again" }),
    event("message", "gone-1-2", {
      conversation_id: "kept-1",
      message_data: { _type: "text", body: "gone" },
    }),
    event("message", "gone-1-3", {
      conversation_id: "gone-1",
      message_data: { _type: "text", body: "gone" },
    }),
  ]);
  await ingestAgain("from-the-start");
  expect(await readAll()).toBe(kept);
  const everything = { clientId: null, window: null, dryRun: false, maxLag: null, rowsPerSecond: null };
  const { events } = await work(backfillJob, { ...everything, source: { kind: "kafka" } });
  expect(events.suppressed).toBeGreaterThan(0);
  expect(await readAll()).toBe(kept);
  const texts = ["gone-user", "gone-chatter", "gone@example.com", "gone asked", "gone again", "kept-chatter"];
  const { found } = await findInActiveParts(system.stack.clickhouse.url("migrator"), texts);
  // Readers of changes are told for a month which records are gone.
  expect(Object.keys(found).toSorted()).toEqual(["gone-user", "kept-chatter"]);

  const later = new Date(Date.now() + 1_000).toISOString();
  await delivery.send([event("conversation", "new", { date_created: later, end_user_id: "gone-user" })]);
  await system.caughtUp("from-the-start", 60_000);
  expect(await readAll()).toContain('"new"');
});

it("goes on, and no writer ends, when Redis hangs for longer than a lease", async () => {
  const before = await readAll();
  await delivery.send(person("hung"));
  await until("the records are readable", 30_000, async () => (await readAll()).includes("hung asked"));
  const { redis } = system.stack;
  const announced = await whileStopped(redis, async () => {
    // What another run announces comes before the renewals of those that have to connect again.
    const answer = redisCommand(redis.url, "HINCRBY conversation-export:writers generation 1");
    await sleep(3 * Number(ENV.WRITER_LEASE_MS));
    return { answer };
  });
  await announced.answer;
  await erase({ email: "hung@example.com" });
  expect(await readAll()).toBe(before);
  const ended = Promise.race([ingest.exited, jobs.exited]);
  expect(await Promise.race([ended, Promise.resolve("none")])).toBe("none");
});

it("is not defeated by a process that was paused with unwritten records", async () => {
  await ingest.kill("SIGTERM");
  const slow = {
    ...ENV,
    KAFKA_GROUP_ID: "from-the-start",
    BATCH_MAX_AGE_MS: "600000",
    KAFKA_SESSION_TIMEOUT_MS: "60000",
  };
  ingest = await system.service("ingest", slow);
  await delivery.send(person("held"));
  await until("the records are held", 30_000, async () => {
    const text = await (await fetch(`${ingest.metricsUrl}/metrics`)).text();
    const counts = [...text.matchAll(/^ingest_records_consumed_total\{.*\} (\d+)$/gm)].map((match) =>
      Number(match[1]),
    );
    return counts.reduce((sum, count) => sum + count, 0) === 4;
  });
  process.kill(ingest.pid, "SIGSTOP");
  await erase({ email: "held@example.com" });
  const before = await readAll();
  process.kill(ingest.pid, "SIGCONT");
  expect(await ingest.exited).toEqual({ code: 1, signal: null });
  expect(await sql("SELECT count() FROM landing WHERE record_id LIKE 'held%'")).toBe("0\n");
  await ingestAgain("from-the-start");
  // The conversation names an end user of whom nobody knew that he has the address, before his own event did.
  await until("nothing of the person is left", 30_000, async () => (await readAll()) === before);
  await until("no writer's finding is left", 30_000, async () => {
    const { found } = await findInActiveParts(system.stack.clickhouse.url("migrator"), ["held-chatter"]);
    const findings = await sql("SELECT count() FROM suppressions WHERE kind = 'end_user'");
    return Object.keys(found).length === 0 && findings === "0\n";
  });
  expect(await sql("SELECT count() FROM end_users WHERE end_user_id LIKE 'held%'")).toBe("0\n");
});

it("starts with no other secret than the first, and says so", async () => {
  await ingest.kill("SIGTERM");
  const refused = system.service("ingest", { ...ENV, SUPPRESSION_SECRET: "x".repeat(32) });
  await expect(refused).rejects.toThrow(/ended with 1/);
  const text = readFileSync(join(system.logFolder, "ingest.log"), "utf8");
  expect(text).toContain("SUPPRESSION_SECRET is not the one that the stored suppressions were made with");
});
