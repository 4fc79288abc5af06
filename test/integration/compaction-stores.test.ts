import { type ConversationRecord, type ExportRecord, updateWindows } from "@conversation-export/domain";
import {
  type CleanupShare,
  type CleanupStore,
  type FoundKeys,
  createCleanupStore,
  createPartitionStore,
  createWindowStore,
  type PartitionStore,
  type WindowStore,
} from "@conversation-export/warehouse";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { until } from "../system/until.ts";
import { type Arrival, expectConversations } from "../warehouse/expected.ts";
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
let cleanup: CleanupStore;
let partitions: PartitionStore;

beforeAll(async () => {
  warehouse = await startWarehouse();
  const session = warehouse.session("jobs");
  windows = createWindowStore({ session, windowSeconds: 3_600 });
  cleanup = createCleanupStore({ session });
  partitions = createPartitionStore({ session });
});
afterAll(async () => {
  await warehouse?.stop();
});
beforeEach(async () => {
  const others = ["upload_windows", "compaction_keys", "compaction_checks", "suppressions"];
  await Promise.all([...TABLES, ...others].map((table) => warehouse.sql(`TRUNCATE TABLE ${table}`)));
  await warehouse.sql("SYSTEM START MERGES");
});

afterEach(async () => {
  // Whatever is moved and restored.
  expect(await warehouse.sql(ROWS_WITHOUT_DATE)).toBe("");
});

const shareOf = (...starts: number[]): CleanupShare => ({ starts, length: HOUR, chunk: 0, chunks: 1 });

/** Findings about records written in the windows that start at these instants. */
const find = async (...starts: number[]): Promise<FoundKeys> => {
  await cleanup.begin("run", shareOf(...starts));
  return cleanup.find("run", shareOf(...starts));
};
const remove = (found: FoundKeys): Promise<void> => cleanup.remove("run", shareOf(DAY_0), found);

const handoff = (target: string, at: number, name: string) => ({
  id: `${target}-attempt`,
  handoff_id: target,
  date_created: new Date(at / 1000).toISOString(),
  name,
});

/** All that a client sees, in both orders. */
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
    // Only the later export of "a" is readable.
    expect(of("conversations", DAY_0)).toMatchObject({
      rows: 1,
      partitions: ["202611"],
      offsets: { 2: 3 },
    });
    expect(of("conversations", DAY_0 + HOUR)).toMatchObject({
      rows: 1,
      partitions: ["202610"],
      offsets: { 1: 9 },
    });
    expect(of("conversation_updates", DAY_0)).toMatchObject({ rows: 2, offsets: { 1: 7, 2: 3 } });
    // The entry and its reference.
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
    expect(await update(DAY_0 + HOUR)).toMatchObject({ opened: 1, closed: 0 });
    expect(await update(DAY_0 + 2 * HOUR)).toMatchObject({ opened: 0, closed: 1, reopened: 0 });
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

    // A later export of the same record: as many rows as before, yet a later place on the bus.
    await warehouse.write([message({ client, time: DAY_0 + 1, offset: 6 }, "m", DAY_0, "a")], DAY_0 + 1);
    expect(await update(DAY_0 + 5 * HOUR)).toMatchObject({ opened: 0, closed: 0, reopened: 1 });
    expect(await windows.list()).toMatchObject([{ state: "open", closedAt: null, reopened: 1 }]);
    expect(await update(DAY_0 + 6 * HOUR)).toMatchObject({ closed: 1 });
  });

  it("sees an INSERT that is still running", async () => {
    expect(await windows.oldestInsert()).toBeNull();
    const before = Date.now() * 1000;
    const slow = warehouse.sql("INSERT INTO watermarks SELECT 'x', sleepEachRow(0.5), now() FROM numbers(3)");
    await until("the INSERT is seen", 10_000, async () => (await windows.oldestInsert()) !== null);
    expect(await windows.oldestInsert()).toBeGreaterThan(before - SECOND);
    await slow;
  });
});

describe("superseded entries of the update index", () => {
  it("go when a closed window holds a later export, and no page changes", async () => {
    const write = (id: string, step: number, uploadedAt: number) =>
      warehouse.write(
        [conversation({ client, time: DAY_0 + step, offset: step }, id, DAY_0, DAY_0 + step * DAY)],
        uploadedAt,
      );
    for (let step = 1; step <= 3; step += 1) for (const id of ["a", "b"]) await write(id, step, DAY_0);
    // Uploaded in a window that is still open: its forerunner is still needed by nobody else, but it stays.
    await write("a", 4, DAY_0 + HOUR);
    const before = await readAll();
    const found = await find(DAY_0);
    expect(found).toMatchObject({ supersededUpdates: 4, movedRecords: 0, movedHandoffs: 0 });
    expect(await rowsOf("conversation_updates")).toBe(7);
    await remove(found);
    await cleanup.forget();
    expect(await rowsOf("conversation_updates")).toBe(3);
    expect(await rowsOf("compaction_keys")).toBe(0);
    expect(await readAll()).toEqual(before);
    expect(await find(DAY_0, DAY_0 + HOUR)).toMatchObject({ supersededUpdates: 1 });
    expect(await find(DAY_0 + 2 * HOUR)).toMatchObject({ supersededUpdates: 0 });
  });

  it("come back for a record that has lost its latest export meanwhile", async () => {
    const exports = [1, 2].map((step) =>
      conversation({ client, time: DAY_0 + step, offset: step }, "a", DAY_0, DAY_0 + step * DAY),
    );
    for (const record of exports) await warehouse.write([record], DAY_0);
    const found = await find(DAY_0);
    expect(found).toMatchObject({ supersededUpdates: 1 });
    // As after a correction that called the latest export wrong.
    for (const table of ["conversations", "conversation_updates"])
      await warehouse.sql(
        `DELETE FROM ${table} WHERE date_updated = fromUnixTimestamp64Micro(${DAY_0 + 2 * DAY}, 'UTC')`,
      );
    const before = await readAll();
    expect(before.updated).toHaveLength(1);
    await remove(found);
    expect(await readAll()).toEqual(before);
  });

  it("do not come back for what is being erased", async () => {
    for (const step of [1, 2])
      await warehouse.write([conversation({ client, time: DAY_0 + step }, "a", DAY_0, DAY_0 + step)], DAY_0);
    const found = await find(DAY_0);
    await warehouse.sql(
      `INSERT INTO suppressions VALUES ('${client}', 'conversation', 'a', 1, now(), 'request', 1)`,
    );
    await warehouse.sql("TRUNCATE TABLE conversation_updates");
    await remove(found);
    expect(await rowsOf("conversation_updates")).toBe(0);
  });

  it("stay when the entry of the latest export is missing", async () => {
    await warehouse.write([conversation({ client, time: DAY_0 }, "a", DAY_0, DAY_0)], DAY_0);
    await warehouse.write([conversation({ client, time: DAY_0 + 1 }, "a", DAY_0, DAY_0 + 1)], DAY_0);
    await warehouse.sql(
      `DELETE FROM conversation_updates WHERE date_updated = fromUnixTimestamp64Micro(${DAY_0 + 1}, 'UTC')`,
    );
    expect(await find(DAY_0)).toMatchObject({ supersededUpdates: 0 });
  });
});

describe("records that stand under two dates", () => {
  const corrected = DAY_0 + 45 * DAY;
  const first = () =>
    conversation({ client, time: DAY_0, offset: 1 }, "a", DAY_0, DAY_0, {
      handoffs: [handoff("desk", DAY_0 + 5, "First"), handoff("night", DAY_0 + 6, "Only here")],
    });
  const second = () =>
    conversation({ client, time: DAY_0 + 1, offset: 2 }, "a", corrected, DAY_0 + 1, {
      handoffs: [handoff("desk", DAY_0 + 4, "Earlier attempt"), handoff("sales", DAY_0 + 7, "New")],
    });
  const other = () => conversation({ client, time: DAY_0, offset: 3 }, "b", DAY_0, DAY_0);

  const expected = (records: readonly ConversationRecord[]): string[] => {
    const arrivals: Arrival<ConversationRecord>[] = records.map((record) => ({ record, uploadedAt: DAY_0 }));
    const window = { client, by: "dateCreated", since: 0, to: DAY_0 + 300 * DAY } as const;
    return expectConversations(arrivals, window).map(({ text }) => text);
  };

  it.each([
    ["as they came", (records: ConversationRecord[]) => records],
    ["in reverse", (records: ConversationRecord[]) => records.toReversed()],
  ])("leave the date of the latest export with the handoffs of all, written %s", async (_, order) => {
    const records = [first(), second(), other()];
    for (const record of order(records)) await warehouse.write([record], DAY_0);
    const before = await readAll();
    expect(before.created).toEqual(expected(records));
    const found = await find(DAY_0);
    // One of the moved handoffs is the later attempt of its target, the other has no like; each has a
    // reference.
    expect(found).toMatchObject({ movedRecords: 1, movedHandoffs: 4 });
    await remove(found);
    const after = await readAll();
    expect(after).toEqual(before);
    expect(after.updated.toSorted()).toEqual(expected(records).toSorted());
    expect(await rowsOf("conversations")).toBe(2);
    expect(await rowsOf("conversation_updates")).toBe(2);
    expect(await find(DAY_0)).toMatchObject({ movedRecords: 0, movedHandoffs: 0 });
  });

  it("keep an export that comes between finding and removing", async () => {
    for (const record of [first(), second()]) await warehouse.write([record], DAY_0);
    const found = await find(DAY_0);
    // The date is corrected back.
    const third = conversation({ client, time: DAY_0 + 2, offset: 9 }, "a", DAY_0, DAY_0 + 2);
    await warehouse.write([third], DAY_0 + HOUR);
    await remove(found);
    expect((await readAll()).created).toHaveLength(1);
    const again = await find(DAY_0 + HOUR);
    await remove(again);
    const created = await readAll();
    const records = [first(), second(), third];
    const arrivals = records.map((record) => ({
      record,
      uploadedAt: record === third ? DAY_0 + HOUR : DAY_0,
    }));
    const window = { client, by: "dateCreated", since: 0, to: DAY_0 + 300 * DAY } as const;
    expect(created.created).toEqual(expectConversations(arrivals, window).map(({ text }) => text));
  });

  it("wait for the window of the latest export, and for a batch on its way", async () => {
    await warehouse.write([first()], DAY_0);
    // The handoffs of a batch whose conversations are not written yet.
    await warehouse.write([second()], DAY_0 + HOUR, 2);
    expect(await find(DAY_0)).toMatchObject({ movedRecords: 0, movedHandoffs: 0 });
    await warehouse.write([second()], DAY_0 + HOUR);
    expect(await find(DAY_0)).toMatchObject({ movedRecords: 0, movedHandoffs: 0 });
    expect(await find(DAY_0 + HOUR)).toMatchObject({ movedRecords: 1 });
  });

  it("are finished by a run that comes after one that broke off before the handoffs", async () => {
    const records = [first(), second()];
    for (const record of records) await warehouse.write([record], DAY_0);
    const found = await find(DAY_0);
    await remove({
      ...found,
      partitions: found.partitions.filter(({ table }) => table !== "handoffs"),
    });
    const again = await find(DAY_0);
    expect(again).toMatchObject({ movedRecords: 0, movedHandoffs: 4 });
    await remove(again);
    expect((await readAll()).created).toEqual(expected(records));
    expect(await warehouse.sql("SELECT DISTINCT conversation_date_created FROM handoffs")).toBe(
      "2026-11-18 00:00:00.000000",
    );
  });

  it("do not bring back what is being erased", async () => {
    for (const record of [first(), second()]) await warehouse.write([record], DAY_0);
    const found = await find(DAY_0);
    await warehouse.sql(
      `INSERT INTO suppressions VALUES ('${client}', 'conversation', 'a', 1, now(), 'request', 1)`,
    );
    await remove(found);
    expect(await rowsOf("handoffs")).toBe(4);
    expect(await warehouse.sql("SELECT count() FROM handoffs WHERE target = 'night'")).toBe("0");
  });

  it("are found among messages too", async () => {
    const records: ExportRecord[] = [
      message({ client, time: DAY_0, offset: 1 }, "m", DAY_0, "a"),
      message({ client, time: DAY_0 + 1, offset: 2 }, "m", DAY_0 + DAY, "a"),
      message({ client, time: DAY_0, offset: 3 }, "n", DAY_0, "a"),
    ];
    for (const record of records) await warehouse.write([record], DAY_0);
    const before = (await readAll()).messages;
    expect(before).toHaveLength(2);
    const found = await find(DAY_0);
    expect(found.movedRecords).toBe(1);
    await remove(found);
    expect((await readAll()).messages).toEqual(before);
    expect(await rowsOf("messages")).toBe(2);
  });

  it("are looked for share by share", async () => {
    for (const id of ["a", "b", "c", "d"])
      for (const [offset, created] of [DAY_0, DAY_0 + DAY].entries())
        await warehouse.write([message({ client, time: DAY_0 + offset, offset }, id, created, "a")], DAY_0);
    let moved = 0;
    expect(await cleanup.begin("run", shareOf(DAY_0))).toBe(4);
    for (let chunk = 0; chunk < 3; chunk += 1) {
      const share = { ...shareOf(DAY_0), chunk, chunks: 3 };
      const found = await cleanup.find("run", share);
      await cleanup.remove("run", share, found);
      moved += found.movedRecords;
    }
    expect(moved).toBe(4);
    expect(await rowsOf("messages")).toBe(4);
  });
});

describe("a partition", () => {
  const partition = { table: "messages", partition: "202610" } as const;
  const write = (id: string, offset: number, uploadedAt = DAY_0, conversationId = "a") =>
    warehouse.write(
      [message({ client, time: DAY_0 + offset, offset }, id, DAY_0, conversationId)],
      uploadedAt,
    );

  beforeEach(async () => {
    await warehouse.sql("SYSTEM STOP MERGES");
    for (let offset = 0; offset < 6; offset += 1) await write(`m${offset % 3}`, offset);
  });

  it.skipIf(SHARDS > 1)("is told by its parts, and becomes one part with the same records", async () => {
    const before = await partitions.facts(partition, 600);
    expect(before).toMatchObject({
      parts: 6,
      rows: 6,
      unmerged: true,
      masked: false,
      recompress: false,
      recentInserts: 6,
      recentRows: 6,
    });
    expect(before.freeBytes).toBeGreaterThan(1e6);
    const records = (await readAll()).messages;
    expect(await partitions.notedAt("run")).toBeNull();
    await partitions.note("run", partition);
    const notedAt = Number(await partitions.notedAt("run"));
    expect(Math.abs(notedAt - Date.now() * 1000)).toBeLessThan(60 * SECOND);
    expect(await partitions.merge(partition)).toBe(false);
    await warehouse.sql("SYSTEM START MERGES");
    expect(await partitions.merge(partition)).toBe(true);
    expect(await partitions.compare("run", partition)).toEqual({
      compared: 3,
      missing: 0,
      changed: 0,
    });
    expect(await partitions.facts(partition, 600)).toMatchObject({ parts: 1, rows: 3, unmerged: false });
    expect((await readAll()).messages).toEqual(records);
    await partitions.forget("run");
    expect(await rowsOf("compaction_checks")).toBe(0);
  });

  it("is found changed when a record is gone or other, and not when a newer one came", async () => {
    await warehouse.sql("SYSTEM START MERGES");
    expect(await partitions.notedAt("run")).toBeNull();
    await partitions.note("run", partition);
    const notedAt = Number(await partitions.notedAt("run"));
    expect(Math.abs(notedAt - Date.now() * 1000)).toBeLessThan(60 * SECOND);
    await warehouse.write([message({ client, time: DAY_0 + DAY }, "m0", DAY_0, "a")], DAY_0);
    // The same export again, stamped before the note and written behind it; and one whose text was corrected.
    await write("m1", 4, DAY_0 - SECOND);
    await write("m2", 5, DAY_0 + SECOND, "corrected");
    expect(await partitions.compare("run", partition)).toMatchObject({ missing: 0, changed: 0 });
    expect(await partitions.deletedSince("messages", notedAt + 60 * SECOND)).toBe(false);
    expect(await partitions.deletedSince("messages", null)).toBe(false);
    await partitions.forget("run");
    await partitions.note("run", partition);
    await warehouse.sql("DELETE FROM messages WHERE message_id = 'm1' AND record != ''");
    await warehouse.sql(
      "ALTER TABLE messages UPDATE record = '{}' WHERE message_id = 'm2' SETTINGS mutations_sync = 2",
    );
    expect(await partitions.compare("run", partition)).toEqual({
      compared: 3,
      missing: 1,
      changed: 1,
    });
    expect(await partitions.deletedSince("messages", notedAt)).toBe(true);
    expect(await partitions.deletedSince("messages", null)).toBe(false);
    await warehouse.sql("SYSTEM STOP MERGES messages");
    await warehouse.sql("DELETE FROM messages WHERE message_id = 'm2' SETTINGS lightweight_deletes_sync = 0");
    expect(await partitions.deletedSince("messages", null)).toBe(true);
    await warehouse.sql("SYSTEM START MERGES messages");
    await partitions.forget("run");
  });

  it("that is old is written with the smaller codec by its merge", async () => {
    const created = DAY_0 - 3 * 365 * DAY;
    await warehouse.write([conversation({ client, time: DAY_0 }, "a", created, created)], DAY_0);
    const cold = await partitions.coldPartitions();
    expect(cold).toEqual([
      { table: "conversation_updates", partition: "202310" },
      { table: "conversations", partition: "202310" },
    ]);
    for (const old of cold) expect(await partitions.facts(old, 600)).toMatchObject({ recompress: true });
    // From here on the server may merge by itself, too.
    await warehouse.sql("SYSTEM START MERGES");
    for (const old of cold) {
      await partitions.merge(old);
    }
    expect(await partitions.coldPartitions()).toEqual([]);
    const codecs = await warehouse.sql(
      "SELECT DISTINCT default_compression_codec FROM system.parts WHERE active AND partition_id = '202310'",
    );
    expect(codecs).toBe("ZSTD(3)");
  });
});
