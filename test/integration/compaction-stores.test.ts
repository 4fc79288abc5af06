import { updateWindows } from "@conversation-export/domain";
import {
  type CleanupShare,
  createSupersededEntries,
  createWindowStore,
  type SupersededEntries,
  type WindowStore,
} from "@conversation-export/warehouse";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../system/until.ts";
import { conversation, DAY, DAY_0, message, SECOND } from "../warehouse/records.ts";
import { walk } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { SHARDS } from "../system/shards.ts";
import { ROWS_WITHOUT_DATE } from "../system/record-dates.ts";

const HOUR = 3_600 * SECOND;
const TABLES = ["conversations", "conversation_updates", "handoffs", "messages", "end_users"] as const;
const client = "acme";

let warehouse: Warehouse;
let windows: WindowStore;
let entries: SupersededEntries;

beforeAll(async () => {
  warehouse = await startWarehouse();
  const session = warehouse.session("jobs");
  windows = createWindowStore({ session, windowSeconds: 3_600 });
  entries = createSupersededEntries({ session, holder: "own" });
});
afterAll(async () => {
  await warehouse?.stop();
});
beforeEach(async () => {
  const others = ["upload_windows", "job_keys", "suppressions"];
  await Promise.all([...TABLES, ...others].map((table) => warehouse.sql(`TRUNCATE TABLE ${table}`)));
  await warehouse.sql("SYSTEM START MERGES");
});

afterEach(async () => {
  expect(await warehouse.sql(ROWS_WITHOUT_DATE)).toBe("");
});

const shareOf = (...starts: number[]): CleanupShare => ({ starts, length: HOUR, chunk: 0, chunks: 1 });

const signal = new AbortController().signal;
const remove = (...starts: number[]): Promise<number> => entries.remove("run", shareOf(...starts), signal);

const handoff = (target: string, at: number, name: string) => ({
  id: `${target}-attempt`,
  handoff_id: target,
  date_created: new Date(at / 1000).toISOString(),
  name,
});

const readAll = async (): Promise<{ created: string[]; updated: string[]; messages: string[] }> => {
  const query = {
    clientId: client,
    since: DAY_0 - 300 * DAY,
    to: DAY_0 + 300 * DAY,
    pageSize: 3,
    wholeTies: false,
  };
  const { reader } = warehouse;
  return {
    created: (await walk((q) => reader.conversationsByCreation(q), query)).records,
    updated: (await walk((q) => reader.conversationsByUpdate(q), query)).records,
    messages: (await walk((q) => reader.messagesByCreation(q), query)).records,
  };
};

const rowsOf = async (table: string): Promise<number> =>
  Number(await warehouse.sql(`SELECT count() FROM ${table}`));

describe("the ledger of upload windows", () => {
  it("counts readable rows by instant of upload, with their partitions and places on the bus", async () => {
    const first = conversation({ client, time: DAY_0, offset: 7, partition: 1 }, "a", DAY_0, DAY_0, {
      handoffs: [handoff("desk", DAY_0, "Desk")],
    });
    const later = conversation({ client, time: DAY_0 + 1, offset: 9, partition: 1 }, "a", DAY_0, DAY_0 + DAY);
    const other = conversation(
      { client, time: DAY_0, offset: 3, partition: 2 },
      "b",
      DAY_0 + 40 * DAY,
      DAY_0,
    );
    await warehouse.write([first, other], DAY_0 + 1);
    await warehouse.write([later], DAY_0 + HOUR);
    await warehouse.write([message({ client, time: DAY_0, offset: 5 }, "m", DAY_0, "a")], DAY_0 + HOUR - 1);

    const counts = await windows.count(0);
    const of = (table: string, start: number) =>
      counts.find((count) => count.table === table && count.start === start);
    expect(of("conversations", DAY_0)).toMatchObject({ rows: 1, partitions: ["202611"], offsets: { 2: 3 } });
    expect(of("conversations", DAY_0 + HOUR)).toMatchObject({
      rows: 1,
      partitions: ["202610"],
      offsets: { 1: 9 },
    });
    expect(of("conversation_updates", DAY_0)).toMatchObject({ rows: 2, offsets: { 1: 7, 2: 3 } });
    expect(of("handoffs", DAY_0)).toMatchObject({ rows: 2, partitions: ["202610"], offsets: { 1: 7 } });
    expect(of("messages", DAY_0)).toMatchObject({ rows: 1, offsets: { 0: 5 } });
    expect((await windows.count(DAY_0 + HOUR)).map(({ start }) => start)).toEqual([
      DAY_0 + HOUR,
      DAY_0 + HOUR,
    ]);
  });

  it("keeps what it was given, and opens a window again when a row comes late", async () => {
    const update = async (now: number) => {
      const stored = await windows.list();
      const counted = await windows.count(0);
      const input = { stored, counted, now, length: HOUR, grace: 120 * SECOND, oldestUpload: null };
      const changes = updateWindows(input);
      await windows.save(changes.lines);
      return changes;
    };
    await warehouse.write([message({ client, time: DAY_0, offset: 5 }, "m", DAY_0, "a")], DAY_0 + HOUR / 2);
    expect(await windows.edges()).toEqual({ last: null, open: null });
    expect(await update(DAY_0 + HOUR)).toMatchObject({ opened: 1, closed: 0 });
    expect(await windows.edges()).toEqual({ last: DAY_0, open: DAY_0 });
    expect(await update(DAY_0 + 2 * HOUR)).toMatchObject({ opened: 0, closed: 1, reopened: 0 });
    expect(await windows.edges()).toEqual({ last: DAY_0, open: null });
    expect(await windows.list({ states: ["closed"] })).toMatchObject([
      { table: "messages", start: DAY_0, rows: 1, partitions: ["202610"], offsets: { 0: 5 }, reopened: 0 },
    ]);
    expect((await update(DAY_0 + 3 * HOUR)).lines).toEqual([]);

    // A host whose clock is behind saves the state that counts.
    await warehouse.sql(
      "INSERT INTO upload_windows SELECT * REPLACE (version + 3600000000 AS version) FROM upload_windows FINAL",
    );
    await windows.markBackfilled({ from: DAY_0, to: DAY_0 + HOUR }, DAY_0 + 4 * HOUR);
    expect(await windows.countStates()).toEqual({ open: 0, closed: 0, compacted: 0, backfilled: 1 });
    expect(await windows.lengths()).toEqual([3_600]);

    // As many rows as before, but a later place on the bus.
    await warehouse.write([message({ client, time: DAY_0 + 1, offset: 6 }, "m", DAY_0, "a")], DAY_0 + 1);
    expect(await update(DAY_0 + 5 * HOUR)).toMatchObject({ opened: 0, closed: 0, reopened: 1 });
    expect(await windows.list()).toMatchObject([{ state: "open", closedAt: null, reopened: 1 }]);
    expect(await update(DAY_0 + 6 * HOUR)).toMatchObject({ closed: 1 });
  });

  it("is the same from whichever window on it is counted, and reads what was uploaded then", async () => {
    const exported = (id: string, time: number, uploadedAt: number) =>
      warehouse.write([conversation({ client, time }, id, DAY_0, DAY_0)], uploadedAt);
    const numbered = (n: number, time: number) =>
      conversation({ client, time }, `old-${n}`, DAY_0 + (n - ALL / 2) * SECOND, DAY_0);
    const ALL = 12_000;
    const old = Array.from({ length: ALL }, (_, n) => numbered(n, DAY_0));
    await warehouse.write(old, DAY_0);
    await warehouse.sql("OPTIMIZE TABLE conversations FINAL");
    await warehouse.sql("SYSTEM STOP MERGES");
    await warehouse.write([numbered(0, DAY_0 + 1), numbered(ALL - 1, DAY_0 + 1)], DAY_0 + 5 * HOUR);
    await exported("late", DAY_0 + 9, DAY_0 + 5 * HOUR);
    await exported("late", DAY_0 + 1, DAY_0 + 6 * HOUR);
    await exported("new", DAY_0, DAY_0 + 7 * HOUR);
    const numbers = async (since: number) =>
      (await windows.count(since))
        .filter(({ table, start }) => table === "conversations" && start >= DAY_0 + 6 * HOUR)
        .map(({ rows }) => rows);
    const all = await numbers(DAY_0);
    expect(all).toEqual([1, 1]);
    expect(await numbers(DAY_0 + 6 * HOUR)).toEqual(all);
    const selected = "SELECT sum(value) FROM system.events WHERE event = 'SelectedRows'";
    const before = Number(await warehouse.sql(selected));
    expect(await numbers(DAY_0 + 5 * HOUR)).toEqual(all);
    expect(Number(await warehouse.sql(selected)) - before).toBeLessThan(ALL / 2);
  });

  it("opens no old window again because the count begins behind what supersedes its rows", async () => {
    await warehouse.sql("SYSTEM STOP MERGES");
    const exported = (id: string, time: number, hour: number) =>
      warehouse.write([conversation({ client, time }, id, DAY_0, DAY_0)], DAY_0 + hour * HOUR);
    await exported("replayed", DAY_0 + 9, 0);
    await exported("replayed", DAY_0 + 1, 1);
    for (let hour = 1; hour <= 8; hour += 1) await exported(`of ${hour}`, DAY_0, hour);
    const update = async (since: number) => {
      const [stored, counted] = [await windows.list({ since }), await windows.count(since)];
      const now = DAY_0 + 20 * HOUR;
      const changes = updateWindows({ stored, counted, now, length: HOUR, grace: 0, oldestUpload: null });
      await windows.save(changes.lines);
      return changes;
    };
    expect(await update(DAY_0)).toMatchObject({ opened: 18, closed: 18 });
    expect(await update(DAY_0 + HOUR)).toMatchObject({
      reopened: 0,
      lines: [{ table: "conversations", start: DAY_0 + HOUR, rows: 2, state: "closed" }],
    });
  });
});

/** `work` runs before superseded entries are deleted, when their keys are stored. */
const beforeDeletion = async (work: () => Promise<void>, ...starts: number[]): Promise<number> => {
  await warehouse.sql("SYSTEM STOP MERGES conversation_updates");
  const removed = remove(...starts);
  try {
    const begun =
      "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND table LIKE 'conversation_updates%' AND NOT is_done";
    await until("the deletion waits", 20_000, async () => (await warehouse.sql(begun)) !== "0");
    expect(await entries.deletionRuns()).toBe(true);
    await work();
  } finally {
    await warehouse.sql("SYSTEM START MERGES conversation_updates");
  }
  return removed;
};

describe("superseded entries of the update index", () => {
  const write = (id: string, step: number, uploadedAt: number, created = DAY_0) =>
    warehouse.write(
      [conversation({ client, time: DAY_0 + step, offset: step }, id, created, DAY_0 + step * DAY)],
      uploadedAt,
    );

  it("go when a closed window holds a later export, share by share, and no page changes", async () => {
    for (let step = 1; step <= 3; step += 1) for (const id of ["a", "b"]) await write(id, step, DAY_0);
    // Uploaded in a window that is still open: the row before it stays.
    await write("a", 4, DAY_0 + HOUR);
    await write("c", 1, DAY_0);
    await write("c", 2, DAY_0, DAY_0 + 45 * DAY);
    await write("d", 1, DAY_0 + HOUR, DAY_0 - 45 * DAY);
    await write("d", 2, DAY_0);
    const before = await readAll();
    expect(await rowsOf("conversation_updates")).toBe(11);
    expect(await entries.countWritten(shareOf(DAY_0))).toBeGreaterThanOrEqual(5);
    const shares = [0, 1, 2].map((chunk) => ({ ...shareOf(DAY_0), chunk, chunks: 3 }));
    const counted = await Promise.all(shares.map((share) => entries.count(share)));
    expect(counted.reduce((sum, each) => sum + each)).toBe(6);
    let removed = 0;
    for (const share of shares) removed += await entries.remove("run", share, signal);
    expect(removed).toBe(6);
    expect(await rowsOf("conversation_updates")).toBe(5);
    expect(await readAll()).toEqual(before);
    expect(await remove(DAY_0, DAY_0 + HOUR)).toBe(1);
    expect(await remove(DAY_0 + 2 * HOUR)).toBe(0);
    expect(await readAll()).toEqual(before);
    expect(await rowsOf("job_keys")).toBe(0);
  });

  it("come back for a record that has lost its latest export meanwhile", async () => {
    for (const step of [1, 2]) await write("a", step, DAY_0);
    // As after a correction of the latest export; its entry goes when merges resume.
    const isSecond = `date_updated = fromUnixTimestamp64Micro(${DAY_0 + 2 * DAY}, 'UTC')`;
    await beforeDeletion(async () => {
      await warehouse.sql(`DELETE FROM conversations WHERE ${isSecond}`);
    }, DAY_0);
    expect((await readAll()).updated).toEqual((await readAll()).created);
    expect((await readAll()).updated).toHaveLength(1);
  });

  it("come back for a record from after an erasure, and not for what is being erased", async () => {
    for (const step of [1, 2]) for (const id of ["a", "b"]) await write(id, step, DAY_0);
    const erasedBefore = (id: string, instant: number) =>
      warehouse.sql(`INSERT INTO suppressions (client_id, kind, value, version, created_before, request_id)
        VALUES ('${client}', 'conversation', '${id}', 1, fromUnixTimestamp64Micro(${instant}, 'UTC'), 'request')`);
    await erasedBefore("a", DAY_0 + 1);
    await erasedBefore("b", DAY_0);
    await beforeDeletion(async () => {
      await warehouse.sql("TRUNCATE TABLE conversation_updates");
    }, DAY_0);
    expect(await warehouse.sql("SELECT conversation_id FROM conversation_updates")).toBe("b");
  });

  it("are not published as removed when the keys went meanwhile", async () => {
    for (const step of [1, 2]) await write("a", step, DAY_0);
    const removed = beforeDeletion(async () => {
      const alive = (holders: string[]) => () => Promise.resolve(new Set(holders));
      // The holder is alive first, then paused for longer than it counts as alive.
      const other = createSupersededEntries({ session: warehouse.session("jobs"), holder: "other" });
      await other.forgetDead(alive(["own", "other"]));
      expect(await rowsOf("job_keys")).toBeGreaterThan(1);
      await other.forgetDead(alive(["other"]));
      expect(await rowsOf("job_keys")).toBe(0);
    }, DAY_0);
    await expect(removed).rejects.toMatchObject({ code: "keys_lost", retryable: true });
    await remove(DAY_0);
    expect(await rowsOf("conversation_updates")).toBe(1);
  });
});

describe("a partition in which nothing is written any more", () => {
  // The record is on either of two shards.
  it.skipIf(SHARDS > 1)("becomes one part by itself, and with the smaller codec after a year", async () => {
    const settings = await warehouse.sql(
      "SELECT DISTINCT extract(engine_full, 'min_age_to_force_merge_seconds = \\\\d+') FROM system.tables WHERE database = currentDatabase() AND match(name, '^(conversations|handoffs|messages)(_local)?$') AND engine != 'Distributed'",
    );
    expect(settings).toBe("min_age_to_force_merge_seconds = 86400");
    const created = DAY_0 - 3 * 365 * DAY;
    for (let step = 0; step < 4; step += 1)
      await warehouse.write(
        [conversation({ client, time: DAY_0 + step, offset: step }, "a", created, created)],
        DAY_0,
      );
    await warehouse.sql(
      "ALTER TABLE conversations MODIFY SETTING min_age_to_force_merge_seconds = 1, merge_selecting_sleep_ms = 100, max_merge_selecting_sleep_ms = 200",
    );
    const parts = `SELECT count(), any(default_compression_codec) FROM system.parts
      WHERE active AND database = currentDatabase() AND table = 'conversations' AND partition_id = '202310'`;
    await until("one part is left", 30_000, async () => (await warehouse.sql(parts)) === "1\tZSTD(3)");
  });
});
