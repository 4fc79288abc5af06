import { once } from "node:events";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExportRecord, WriteTicket } from "@conversation-export/domain";
import { createStableMonitor } from "@conversation-export/jobs";
import { createLogger, createMetrics } from "@conversation-export/runtime";
import {
  type Coordination,
  createBatch,
  createStableStore,
  createCoordination,
  createWriter,
  isStaleTicket,
  noteDeleted,
  type Writer,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createStableLedger } from "../compare/stable-ledger.ts";
import { createRandom } from "../sample/values/random.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { conversation, DAY_0, endUser, message, SECOND } from "../warehouse/records.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

let warehouse: Warehouse;
let stamps: Coordination;
let announcements: Coordination;
let writer: Writer;
beforeAll(async () => {
  warehouse = await startWarehouse();
  stamps = createCoordination({ session: warehouse.session("writer") });
  announcements = createCoordination({ session: warehouse.session("jobs") });
  writer = createWriter({ session: warehouse.session("writer") });
});
afterAll(() => warehouse?.stop());

const log = createLogger({ service: "test", level: "silent" });
let made = 0;
const nextId = (): string => `r${(made += 1)}`;
const at = (id: string) => ({ client: "acme", time: DAY_0, offset: Number(id.slice(1)) });
const records: Readonly<Record<string, (id: string) => ExportRecord>> = {
  conversation: (id) =>
    conversation(at(id), id, DAY_0, DAY_0, {
      handoffs: [{ name: "Desk", handoff_id: "h1", id: "a1", date_created: "2026-10-04T00:00:00Z" }],
    }),
  message: (id) => message(at(id), id, DAY_0, "parent"),
  end_user: (id) => endUser(at(id), id),
};
const insertsOf = (record: ExportRecord, stamp: number) => {
  const batch = createBatch(record.type, 1024, { landingDays: 7 });
  batch.add(record, {
    topic: "t",
    partition: 0,
    offset: made,
    key: null,
    value: Buffer.from("{}"),
    headers: {},
    timestamp: DAY_0 / 1000,
  });
  batch.fillUpload(stamp);
  return batch.inserts(0, 1);
};
const oldestRunning = async (): Promise<number> =>
  Math.min(...(await announcements.running()).map(({ stamp }) => stamp ?? Infinity));
const answers = async (kind: string, { stamp, generation }: WriteTicket): Promise<Record<string, string>> => {
  const said: Record<string, string> = {};
  for (const insert of insertsOf(records[kind]?.(nextId()) as ExportRecord, stamp))
    said[insert.table] = await writer.insert(insert, { stamp, generation }).then(
      () => "stored",
      (error: unknown) => (isStaleTicket(error) ? "refused" : String(error)),
    );
  return said;
};
const everyTable = async (use: WriteTicket): Promise<ReadonlySet<string>> => {
  const said = new Set<string>();
  const tables: string[] = [];
  for (const kind of Object.keys(records))
    for (const [table, answer] of Object.entries(await answers(kind, use))) {
      said.add(answer);
      tables.push(table);
    }
  expect(new Set(tables).size).toBe(8);
  return said;
};
const ONLY = (answer: string): ReadonlySet<string> => new Set([answer]);

describe("a ticket", () => {
  it("is good in every table until its stamp is announced", async () => {
    const use = await stamps.take();
    expect(await everyTable(use)).toEqual(ONLY("stored"));
    await announcements.announce(use.stamp - 1);
    expect(await everyTable(use)).toEqual(ONLY("stored"));
    await announcements.announce(use.stamp);
    expect(await everyTable(use)).toEqual(ONLY("refused"));
    expect(await everyTable(await stamps.take())).toEqual(ONLY("stored"));
  });

  it("is good in every table until later suppressions are required", async () => {
    const use = await stamps.take();
    const next = await announcements.beginGeneration();
    expect(next).toBeGreaterThan(use.generation);
    expect((await stamps.take()).generation).toBe(next);
    expect(await announcements.beginGeneration()).toBeGreaterThan(next);
    expect(await everyTable(use)).toEqual(ONLY("stored"));
    await announcements.requireGeneration(next);
    expect(await everyTable(use)).toEqual(ONLY("refused"));
    expect(await everyTable({ ...use, generation: next })).toEqual(ONLY("stored"));
    // A slower one that began earlier reverts nothing.
    await announcements.requireGeneration(next - 1);
    expect(await everyTable(use)).toEqual(ONLY("refused"));
  });

  it("holds for what jobs write by a statement of their own", async () => {
    const session = warehouse.session("jobs");
    const publish = (use: WriteTicket): Promise<void> =>
      noteDeleted(
        { session, runUpload: (work) => work(use) },
        {
          name: "test.publish",
          source: "SELECT 'acme' AS client_id, 'message' AS kind, 'gone' AS id, now64(6) AS date_created",
        },
      );
    const use = await stamps.take();
    await publish(use);
    await announcements.announce(use.stamp);
    await expect(publish(use)).rejects.toSatisfy(isStaleTicket);
    const published = await warehouse.sql("SELECT count() FROM changes WHERE id = 'gone'");
    expect(published).toBe("1");
  });

  it("is above what was announced when ClickHouse's clock was set back, and waits when that was far", async () => {
    const { clock } = await announcements.look();
    await announcements.announce(clock + 5 * SECOND);
    expect((await stamps.take()).stamp).toBe(clock + 5 * SECOND + 1);
    expect(await everyTable(await stamps.take())).toEqual(ONLY("stored"));
    await announcements.announce(clock + 60 * SECOND);
    await expect(stamps.take()).rejects.toMatchObject({ causeName: "CLOCK_WENT_BACK", retryable: true });
    expect(await everyTable({ stamp: clock + 60 * SECOND + 1, generation: 1_000 })).toEqual(ONLY("refused"));
    await warehouse.sql("TRUNCATE TABLE coordination");
  });
});

const startInsert = async (sql: string, id: string) => {
  const url = new URL(warehouse.stack.clickhouse.url("migrator"));
  const query = new URLSearchParams({
    database: url.pathname.slice(1),
    query: sql,
    query_id: id,
    log_comment: "stamped",
    // As sessions do: otherwise shards get the row later.
    distributed_foreground_insert: "1",
  });
  const sent = request({
    host: url.hostname,
    port: url.port,
    method: "POST",
    path: `/?${query.toString()}`,
    auth: `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`,
  });
  sent.on("error", () => undefined);
  const answered = once(sent, "response").then(async ([response]) => {
    let text = "";
    for await (const chunk of response) text += String(chunk);
    return text;
  });
  // ClickHouse starts a query once it has read this much.
  sent.write(" ".repeat(400_000));
  return {
    end: async (body: string): Promise<string> => {
      sent.end(body);
      return answered;
    },
  };
};
const runs = async (id: string): Promise<void> => {
  await expect
    .poll(() => warehouse.sql(`SELECT count() FROM system.processes WHERE query_id = '${id}'`), {
      timeout: 10_000,
    })
    .toBe("1");
};

it("has readers wait for the oldest stamp that was noted, unless it is withdrawn, refused anyway, or too old", async () => {
  const { announced } = await announcements.look();
  const stamp = Math.max((await stamps.take()).stamp, announced + 1);
  const wait = async (): Promise<number | null> => (await announcements.look()).inFlight;
  expect(await wait()).toBeNull();
  await stamps.noteInFlight("one", stamp + 2);
  await stamps.noteInFlight("two", stamp + 1);
  expect(await wait()).toBe(stamp + 1);
  await stamps.noteInFlight("two", null);
  expect(await wait()).toBe(stamp + 2);
  await stamps.noteInFlight("hangs", stamp - 31 * SECOND);
  expect(await wait()).toBe(stamp + 2);
  await announcements.announce(stamp + 2);
  expect(await wait()).toBeNull();
});

describe("an INSERT that began before the announcement", () => {
  const fencedBy = (stamp: number): string =>
    `INSERT INTO end_users (client_id, end_user_id, version, uploaded_at)
      SELECT * FROM input('client_id String, end_user_id String, version UInt128, uploaded_at DateTime64(6)')
        WHERE (SELECT throwIf(maxIf(value, name = 'announced') >= ${stamp}) FROM coordination) = 0
      FORMAT JSONCompactEachRow`;

  it("is seen while its body is on its way, and stored however long that takes", async () => {
    const { stamp } = await stamps.take();
    const id = `uploaded-${stamp}-slow`;
    const insert = await startInsert(fencedBy(stamp), id);
    await runs(id);
    await announcements.announce(stamp + SECOND);
    expect(await oldestRunning()).toBe(stamp);
    const row = [
      "acme",
      "dribbles",
      1,
      new Date(stamp / 1000).toISOString().replace("T", " ").replace("Z", ""),
    ];
    expect(await insert.end(JSON.stringify(row))).toBe("");
    expect(await oldestRunning()).toBe(Infinity);
    expect(await warehouse.sql("SELECT count() FROM end_users WHERE end_user_id = 'dribbles'")).toBe("1");
  });

  it("of a hand counts from its begin less a second, and a hand cannot insert what is past", async () => {
    const past = `INSERT INTO end_users (client_id, end_user_id, version, uploaded_at)
      SETTINGS log_comment = '' SELECT 'acme', 'by hand', 1, now64(6) - INTERVAL 2 SECOND`;
    await expect(warehouse.sql(past)).rejects.toThrow("must be the present");
    await warehouse.sql(past.replace(" - INTERVAL 2 SECOND", ""));
    expect(await warehouse.sql("SELECT count() FROM end_users WHERE end_user_id = 'by hand'")).toBe("1");
    const { clock } = await announcements.look();
    const insert = await startInsert(
      "/* an operator */ insert into end_users (client_id, end_user_id, version, uploaded_at) FORMAT JSONCompactEachRow",
      "of-a-hand",
    );
    await runs("of-a-hand");
    const oldest = await oldestRunning();
    expect(Math.abs(oldest + SECOND - clock)).toBeLessThan(3 * SECOND);
    await insert.end("");
    expect(await oldestRunning()).toBe(Infinity);
  });
});

it("never settles an instant behind which a row still comes, whatever is paused where", async () => {
  const seed = seedOfRun("stamps");
  const random = createRandom(seed, "pauses");
  await warehouse.sql("SYSTEM START MERGES");
  const ledger = createStableLedger(warehouse.stack.clickhouse.url("migrator"));
  const session = warehouse.session("jobs");
  const watches = [10, 25].map((intervalMs) =>
    createStableMonitor({
      coordination: createCoordination({ session }),
      store: createStableStore({ session }),
      intervalMs,
      behind: 300_000,
      metrics: createMetrics({ service: "test" }),
      log,
      now: Date.now,
    }),
  );
  for (const watch of watches) await watch.start();
  const endAt = performance.now() + bySize(6_000, 60_000);
  const pause = (): Promise<void> => sleep(random.chance(0.1) ? random.int(500) : random.int(8));
  let stored = 0;
  let stale = 0;
  const write = async (kind: string): Promise<void> => {
    while (performance.now() < endAt) {
      const record = records[kind]?.(nextId()) as ExportRecord;
      for (let done = false, tries = 0; !done; tries += 1) {
        const use = await stamps.take();
        if (tries > 1) await stamps.noteInFlight(record.id, use.stamp);
        await pause();
        try {
          for (const insert of insertsOf(record, use.stamp)) {
            await writer.insert(insert, use);
            await pause();
          }
          done = true;
          stored += 1;
        } catch (error) {
          if (!isStaleTicket(error)) throw error;
          stale += 1;
          if (performance.now() > endAt) done = true;
        }
      }
    }
  };
  const note = async (): Promise<void> => {
    while (performance.now() < endAt) {
      await ledger.note();
      await sleep(20);
    }
  };
  await Promise.all([...Object.keys(records).map(write), note()]);
  await ledger.note();
  expect(await ledger.late()).toEqual([]);
  for (const watch of watches) await watch.stop();
  expect(stored).toBeGreaterThan(5);
  expect(stale).toBeGreaterThan(0);
  expect(await ledger.stable()).toBeGreaterThan((Date.now() - 10_000) * 1000);
}, 120_000);
