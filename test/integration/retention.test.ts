import type { ExportRecord } from "@conversation-export/domain";
import { createRetentionStore, RETENTION_TABLES, type RetentionStore } from "@conversation-export/warehouse";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { bySize } from "../support/run/size.ts";
import {
  conversation,
  DAY,
  DAY_0,
  endUser,
  message,
  SECOND,
  startWarehouse,
  type Warehouse,
} from "./warehouse-fixture.ts";
import { SHARDS } from "../support/run/shards.ts";

const MONTH = 31 * DAY;

let warehouse: Warehouse;
let store: RetentionStore;

beforeAll(async () => {
  warehouse = await startWarehouse();
  // Rows are cut out where parts are merged.
  await warehouse.sql("SYSTEM START MERGES");
  store = createRetentionStore({
    url: warehouse.stack.clickhouse.url("jobs"),
    application: "test",
    topology: warehouse.topology,
  });
});
afterAll(async () => {
  await store?.close();
  await warehouse?.stop();
});
beforeEach(async () => {
  for (const table of RETENTION_TABLES) await warehouse.sql(`TRUNCATE TABLE ${table}`);
});

const handoffs = (created: number) => [
  { id: "h", handoff_id: "target", date_created: new Date(created / 1000).toISOString() },
];

/** A conversation with a handoff and a message, of a client and an age. */
const dialog = (client: string, id: string, created: number): ExportRecord[] => [
  conversation({ client, time: created + DAY }, id, created, created + 40 * DAY, {
    handoffs: handoffs(created),
  }),
  message({ client, time: created + DAY }, `m-${id}`, created, id),
];

const write = async (records: readonly ExportRecord[], uploadedAt = DAY_0): Promise<void> => {
  for (const ofType of Map.groupBy(records, ({ type }) => type).values())
    await warehouse.write(ofType, uploadedAt);
};

const land = (client: string, type: string, id: string, created: number, uploadedAt = DAY_0) =>
  warehouse.sql(`INSERT INTO landing (topic, partition, offset, type, client_id, record_id, date_created, uploaded_at, expires_on)
    SELECT 'conversations', 0, cityHash64('${client}/${type}/${id}') % 1000000, '${type}', '${client}', '${id}',
      fromUnixTimestamp64Micro(${created}, 'UTC'), fromUnixTimestamp64Micro(${uploadedAt}, 'UTC'), '2100-01-01'`);

/** Every stored row by table, superseded ones too. */
const stored = async (): Promise<Record<string, string[]>> => {
  const ids: Readonly<Record<(typeof RETENTION_TABLES)[number], string>> = {
    conversations: "conversation_id",
    conversation_updates: "conversation_id",
    handoffs: "conversation_id",
    messages: "message_id",
    landing: "record_id",
    end_users: "end_user_id",
  };
  const rows = await Promise.all(
    RETENTION_TABLES.map(async (table) => {
      const text = await warehouse.sql(
        `SELECT concat(client_id, '/', ${ids[table]}) AS row FROM ${table} ORDER BY row`,
      );
      return [table, text === "" ? [] : text.split("\n")] as const;
    }),
  );
  return Object.fromEntries(rows);
};

const eraseAll = async (cutoffs: Parameters<RetentionStore["expired"]>[0]): Promise<number> => {
  const expired = await store.expired(cutoffs);
  let dropped = 0;
  for (const table of RETENTION_TABLES) dropped += (await expired.erase(table)).dropped;
  await expired.end();
  return dropped;
};

it("erases what is older than its client keeps, in every table, and nothing of anybody else", async () => {
  const before = DAY_0 - 30 * DAY;
  await write([
    ...dialog("short", "old", before - SECOND),
    ...dialog("short", "new", before),
    ...dialog("long", "old", before - SECOND),
    ...dialog("ever", "old", DAY_0 - 900 * DAY),
  ]);
  for (const client of ["short", "long", "ever"]) {
    await land(client, "conversation.exported", "old", before - SECOND);
    await land(client, "message.exported", "m-new", before);
  }
  const cutoffs = [
    { clientId: "short", before },
    { clientId: "long", before: before - SECOND },
  ];
  const expired = await store.expired(cutoffs);
  for (const table of RETENTION_TABLES) {
    const rows = table === "end_users" ? [] : [{ clientId: "short", rows: 1 }];
    expect(await expired.count(table), table).toEqual(rows);
  }
  await eraseAll(cutoffs);
  const left = ["ever/old", "long/old", "short/new"];
  expect(await stored()).toEqual({
    conversations: left,
    conversation_updates: left,
    handoffs: left,
    messages: ["ever/m-old", "long/m-old", "short/m-new"],
    landing: ["ever/m-new", "ever/old", "long/m-new", "long/old", "short/m-new"],
    end_users: [],
  });
  // Erased and not only hidden.
  const hidden =
    "SELECT count() FROM system.parts WHERE database = currentDatabase() AND active AND has_lightweight_delete";
  expect(await warehouse.sql(hidden)).toBe("0");
});

it.skipIf(SHARDS > 1)(
  "drops parts in which all clients are expired, and cuts the rows out of the others",
  async () => {
    const old = DAY_0 - 3 * MONTH;
    // Parts of three months, which are never merged with each other.
    await write([...dialog("short", "a", old), ...dialog("long", "b", old)]);
    await write(dialog("short", "c", old - MONTH));
    await write([...dialog("short", "d", old - 2 * MONTH), ...dialog("ever", "e", old - 2 * MONTH)]);
    const parts = () =>
      warehouse.sql(
        "SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'messages' AND active AND rows > 0",
      );
    expect(await parts()).toBe("3");
    const dropped = await eraseAll([
      { clientId: "short", before: DAY_0 },
      { clientId: "long", before: DAY_0 },
    ]);
    // Conversation, update, handoff and message of a, b and c.
    expect(dropped).toBe(12);
    expect(await parts()).toBe("1");
    expect((await stored())["conversations"]).toEqual(["ever/e"]);
  },
);

it("keeps an end user whose latest version is young, with all versions, and erases the others with their events", async () => {
  const person = (id: string, time: number, updated: number) =>
    endUser({ client: "short", time }, id, {
      created_at: new Date((DAY_0 - 900 * DAY) / 1000).toISOString(),
      updated_at: new Date(updated / 1000).toISOString(),
    });
  const before = DAY_0 - 30 * DAY;
  await write([person("back", 1, before - DAY), person("gone", 1, before - 2 * DAY)]);
  await write([person("back", 2, before), person("gone", 2, before - DAY)]);
  // An export that came late tells of a younger update than the latest one.
  await write([person("odd", 2, before - DAY)]);
  await write([person("odd", 1, before + DAY)]);
  for (const id of ["back", "gone", "odd"]) {
    await land("short", "end_user.exported", id, DAY_0 - 900 * DAY);
    await land("other", "end_user.exported", id, DAY_0 - 900 * DAY);
  }
  await eraseAll([{ clientId: "short", before }]);
  const { end_users, landing } = await stored();
  expect(end_users).toEqual(["short/back", "short/back", "short/odd", "short/odd"]);
  expect(landing).toEqual(["other/back", "other/gone", "other/odd", "short/back", "short/odd"]);
});

it("takes away what was only hidden, and leaves hidden rows of others", async () => {
  const before = DAY_0 - 30 * DAY;
  await write([
    ...dialog("short", "old", before - SECOND),
    ...dialog("short", "new", before),
    ...dialog("ever", "old", before - 40 * DAY),
    endUser({ client: "short", time: 1 }, "gone", { updated_at: new Date(before / 1000 - 1).toISOString() }),
    endUser({ client: "short", time: 1 }, "here", { updated_at: new Date(before / 1000).toISOString() }),
  ]);
  for (const table of ["conversations", "handoffs"])
    await warehouse.sql(`DELETE FROM ${table} WHERE conversation_id = 'old'`);
  await warehouse.sql("DELETE FROM end_users WHERE end_user_id = 'gone'");
  const cutoffs = [{ clientId: "short", before }];
  const expired = await store.expired(cutoffs);
  for (const table of ["conversations", "handoffs", "end_users"] as const)
    expect(await expired.count(table), table).toEqual([{ clientId: "short", rows: 1 }]);
  await expired.end();
  await eraseAll(cutoffs);
  const left = (table: string): Promise<string> =>
    warehouse.sql(`SELECT client_id, count() FROM ${table} GROUP BY client_id ORDER BY client_id
      SETTINGS apply_deleted_mask = 0`);
  expect(await left("conversations")).toBe("ever\t1\nshort\t1");
  expect(await left("end_users")).toBe("short\t1");
  expect(await warehouse.sql("SELECT count() FROM job_keys")).toBe("0");
});

it("leaves an update of an end user that comes while it runs", async () => {
  const person = (time: number, updated: number) =>
    endUser({ client: "short", time }, "p", {
      updated_at: new Date(updated / 1000).toISOString(),
    });
  await write([person(1, DAY_0 - 90 * DAY)]);
  const expired = await store.expired([{ clientId: "short", before: DAY_0 - 30 * DAY }]);
  await write([person(2, DAY_0)]);
  await expired.erase("end_users");
  expect(await warehouse.sql("SELECT count(), max(date_updated) = '2026-10-04' FROM end_users")).toBe("1\t1");
});

it("is harmless beside merges, and twice at once", async () => {
  const old = DAY_0 - 2 * MONTH;
  const rounds = bySize(3, 12);
  for (let round = 0; round < rounds; round += 1) {
    await write([...dialog("short", `s${round}`, old + round), ...dialog("ever", `e${round}`, old + round)]);
    await write(dialog("short", `t${round}`, old + round));
  }
  const cutoffs = [{ clientId: "short", before: DAY_0 }];
  await Promise.all([eraseAll(cutoffs), eraseAll(cutoffs)]);
  const kept = Array.from({ length: rounds }, (_, round) => `ever/e${round}`).sort();
  expect((await stored())["conversations"]).toEqual(kept);
  expect(await eraseAll(cutoffs)).toBe(0);
}, 60_000);
