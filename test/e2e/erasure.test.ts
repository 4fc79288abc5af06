import { readFileSync } from "node:fs";
import { join } from "node:path";
import { backfillJob, type JobClient, reconcileJob } from "@conversation-export/queue";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createChangeFollower } from "../compare/change-follower.ts";
import { findInActiveParts } from "../compare/part-bytes.ts";
import { CLIENT, ENV, type ErasureTrial, startErasureTrial } from "../system/erasure-trial.ts";
import { startJobClient, workOff } from "../system/operator-jobs.ts";
import { until } from "../system/until.ts";

const LISTS = ["conversations", "messages", "end_users"] as const;
const startedAt = Date.now();

let trial: ErasureTrial;
let client: JobClient;

beforeAll(async () => {
  trial = await startErasureTrial("erasure");
  client = await startJobClient(trial.system.stack.redis.url);
});

afterAll(async () => {
  await client?.stop();
  await trial?.system.stop();
});

it("hides a person from every list before the rows are gone, and publishes the deletions when they are", async () => {
  const before = await trial.readAll();
  await trial.delivery.send(trial.person("hidden"));
  await trial.system.caughtUp(60_000);
  const followers = LISTS.map((list) =>
    createChangeFollower({ apiUrl: trial.system.apiUrl, key: trial.key, list }),
  );
  const heldOfPerson = async (): Promise<number> => {
    for (const follower of followers) await follower.toTheEnd(() => 100).catch(() => undefined);
    return followers.flatMap(({ held }) => [...held.keys()]).filter((id) => id.startsWith("hidden")).length;
  };
  await until("readers of changes hold the records", 30_000, async () => (await heldOfPerson()) === 4);

  // No row is deleted until merges resume.
  await trial.system.sql("SYSTEM STOP MERGES");
  let address: string;
  try {
    address = await trial.request({ email: "hidden@example.com" });
    await until("no list has the person", 30_000, async () => (await trial.readAll()) === before);
    expect(
      await trial.system.sql("SELECT uniqExact(message_id) FROM messages WHERE message_id LIKE 'hidden%'"),
    ).toBe("2");
    expect((await trial.statusAt(address)).status).not.toBe("completed");
  } finally {
    await trial.system.sql("SYSTEM START MERGES");
  }
  await trial.completed(address);
  expect(await trial.system.sql("SELECT count() FROM messages WHERE message_id LIKE 'hidden%'")).toBe("0");
  await until("readers of changes hold none of them", 60_000, async () => (await heldOfPerson()) === 0);
});

it("lets no trace come back with a replay of everything and with late events", async () => {
  await trial.delivery.send(trial.person("kept"));
  await trial.system.caughtUp(60_000);
  const kept = await trial.readAll();
  await trial.delivery.send(trial.person("gone"));
  await trial.system.caughtUp(60_000);
  expect((await trial.readAll()).length).toBeGreaterThan(kept.length);

  await trial.erase({ email: "Gone@example.com" });
  expect(await trial.readAll()).toBe(kept);
  const from = new Date(startedAt).toISOString();
  await workOff(client, reconcileJob, { from, to: new Date(startedAt + 1).toISOString(), clientId: CLIENT });

  await trial.ingest.kill("SIGTERM");
  await trial.delivery.send([
    trial.event("conversation", "gone-1", { inquiry_summary: "gone again" }),
    trial.event("conversation", "gone-2", { end_user_id: "gone-user", inquiry_summary: "gone again" }),
    trial.event("message", "gone-1-2", {
      conversation_id: "kept-1",
      message_data: { _type: "text", body: "gone" },
    }),
    trial.event("message", "gone-1-3", {
      conversation_id: "gone-1",
      message_data: { _type: "text", body: "gone" },
    }),
  ]);
  await trial.ingestAgain("from-the-start");
  expect(await trial.readAll()).toBe(kept);
  const everything = { clientId: null, window: null, dryRun: false, maxLag: null, rowsPerSecond: null };
  const { events } = await workOff(client, backfillJob, { ...everything, source: { kind: "kafka" } });
  expect(events.suppressed).toBeGreaterThan(0);
  expect(await trial.readAll()).toBe(kept);
  const texts = ["gone-user", "gone-chatter", "gone@example.com", "gone asked", "gone again", "kept-chatter"];
  const { found } = await findInActiveParts(trial.system.stack.clickhouse.url("migrator"), texts);
  // Deletions stay in `changes` for a month.
  expect(Object.keys(found).toSorted()).toEqual(["gone-user", "kept-chatter"]);

  const later = new Date(Date.now() + 1_000).toISOString();
  await trial.delivery.send([
    trial.event("conversation", "new", { date_created: later, end_user_id: "gone-user" }),
  ]);
  await trial.system.caughtUp(60_000, "from-the-start");
  expect(await trial.readAll()).toContain('"new"');
});

it("starts with no other secret than the first, and says so", async () => {
  await trial.ingest.kill("SIGTERM");
  const refused = trial.system.service("ingest", { ...ENV, SUPPRESSION_SECRET: "x".repeat(32) });
  await expect(refused).rejects.toThrow(/ended with 1/);
  const text = readFileSync(join(trial.system.logFolder, "ingest.log"), "utf8");
  expect(text).toContain("SUPPRESSION_SECRET is not the one that the stored suppressions were made with");
});
