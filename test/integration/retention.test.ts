import { text } from "node:stream/consumers";
import type { ExportRecord } from "@conversation-export/domain";
import {
  createErasureStore,
  createReconcileStore,
  createRetentionStore,
  type Expired,
  RETENTION_TABLES,
  type RetentionStore,
  type Session,
} from "@conversation-export/warehouse";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bySize } from "../system/size.ts";
import { until } from "../system/until.ts";
import { conversation, DAY, DAY_0, endUser, message, SECOND } from "../warehouse/records.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";
import { SHARDS } from "../system/shards.ts";
import { uploadNow } from "../warehouse/upload-now.ts";

const MONTH = 31 * DAY;

let warehouse: Warehouse;
let store: RetentionStore;

beforeAll(async () => {
  warehouse = await startWarehouse();
  // Merging parts would remove the rows.
  await warehouse.sql("SYSTEM START MERGES");
  store = createRetentionStore({ session: warehouse.session("jobs"), runUpload: uploadNow });
});
afterAll(async () => {
  await warehouse?.stop();
});
beforeEach(async () => {
  const tables = [...RETENTION_TABLES, "erasure_keys"];
  await Promise.all(tables.map((table) => warehouse.sql(`TRUNCATE TABLE ${table}`)));
});

const handoffs = (created: number) => [
  { id: "h", handoff_id: null, date_created: new Date(created / 1000).toISOString() },
];

/** The later `time`, the newer. */
const dialog = (client: string, id: string, created: number, time = created + DAY): ExportRecord[] => [
  conversation({ client, time }, id, created, created + 40 * DAY, { handoffs: handoffs(created) }),
  message({ client, time }, `m-${id}`, created, id),
];

const person = (id: string, time: number, updated: number, client = "short") =>
  endUser({ client, time }, id, {
    created_at: new Date((DAY_0 - 900 * DAY) / 1000).toISOString(),
    updated_at: new Date(updated / 1000).toISOString(),
  });

const write = async (records: readonly ExportRecord[], uploadedAt = DAY_0): Promise<void> => {
  for (const ofType of Map.groupBy(records, ({ type }) => type).values())
    await warehouse.write(ofType, uploadedAt);
};

/** Makes dates old enough to go: dates of a batch in flight stay. */
const settleDates = (): Promise<string> =>
  warehouse.sql(
    "ALTER TABLE record_dates UPDATE added_at = added_at - INTERVAL 1 HOUR WHERE 1 SETTINGS mutations_sync = 2",
  );

const land = (client: string, type: string, id: string, created: number, uploadedAt = DAY_0) =>
  warehouse.sql(`INSERT INTO landing (topic, partition, offset, type, client_id, record_id, date_created, uploaded_at, expires_on)
    SELECT 'conversations', 0, cityHash64('${client}/${type}/${id}/${created}') % 1000000, '${type}', '${client}', '${id}',
      fromUnixTimestamp64Micro(${created}, 'UTC'), fromUnixTimestamp64Micro(${uploadedAt}, 'UTC'), '2100-01-01'`);

const stored = async (): Promise<Record<string, string[]>> => {
  const ids: Readonly<Record<(typeof RETENTION_TABLES)[number], string>> = {
    conversations: "conversation_id",
    conversation_updates: "conversation_id",
    handoffs: "conversation_id",
    messages: "message_id",
    record_dates: "id",
    landing: "record_id",
    end_users: "end_user_id",
    changes: "concat(id, if(deleted, ' deleted', ''))",
  };
  const rows = await Promise.all(
    RETENTION_TABLES.map(async (table) => {
      const found = await warehouse.sql(
        `SELECT concat(client_id, '/', ${ids[table]}) AS row FROM ${table} ORDER BY row`,
      );
      return [table, found === "" ? [] : found.split("\n")] as const;
    }),
  );
  return Object.fromEntries(rows);
};

const changesSince = async (begun: number): Promise<string> => {
  const { records } = await warehouse.reader.changes({
    clientId: "short",
    kind: "conversation",
    after: { date: begun, id: "" },
    stableUpTo: Date.now() * 1000 + 10 * SECOND,
    pageSize: 100,
  });
  return text(records);
};

const BEFORE = DAY_0 - 30 * DAY;
const [OLD, YOUNG] = [BEFORE - DAY, BEFORE + DAY];
const CUTOFFS = [{ clientId: "short", before: BEFORE }];

/** Without the dates of records, whose parts hold all months. */
const eraseTables = async (expired: Expired): Promise<number> => {
  let dropped = 0;
  for (const table of RETENTION_TABLES) {
    const erased = await expired.erase(table);
    if (table !== "record_dates") dropped += erased.dropped;
  }
  await expired.end(new AbortController().signal);
  return dropped;
};
const eraseAll = async (cutoffs: Parameters<RetentionStore["expired"]>[0]): Promise<number> => {
  await settleDates();
  return eraseTables(await store.expired(cutoffs));
};

it("erases what is older than its client keeps, in every table, and nothing of anybody else", async () => {
  await write([
    ...dialog("short", "old", BEFORE - SECOND),
    ...dialog("short", "new", BEFORE),
    ...dialog("long", "old", BEFORE - SECOND),
    ...dialog("ever", "old", DAY_0 - 900 * DAY),
  ]);
  for (const client of ["short", "long", "ever"]) {
    await land(client, "conversation.exported", "old", BEFORE - SECOND);
    await land(client, "message.exported", "m-new", BEFORE);
  }
  const cutoffs = [
    { clientId: "short", before: BEFORE },
    { clientId: "long", before: BEFORE - SECOND },
  ];
  await settleDates();
  const expired = await store.expired(cutoffs);
  for (const table of RETENTION_TABLES) {
    const rows = table === "record_dates" || table === "changes" ? 2 : 1;
    const counted = table === "end_users" ? [] : [{ clientId: "short", rows }];
    expect(await expired.count(table), table).toEqual(counted);
  }
  await eraseAll(cutoffs);
  const left = ["ever/old", "long/old", "short/new"];
  expect(await stored()).toEqual({
    conversations: left,
    conversation_updates: left,
    handoffs: left,
    messages: ["ever/m-old", "long/m-old", "short/m-new"],
    record_dates: [...left, "ever/m-old", "long/m-old", "short/m-new"].toSorted(),
    landing: ["ever/m-new", "ever/old", "long/m-new", "long/old", "short/m-new"],
    end_users: [],
    changes: [
      ...left,
      "ever/m-old",
      "long/m-old",
      "short/m-new",
      "short/m-old deleted",
      "short/old deleted",
    ].toSorted(),
  });
  const hidden =
    "SELECT count() FROM system.parts WHERE database = currentDatabase() AND active AND has_lightweight_delete";
  expect(await warehouse.sql(hidden)).toBe("0");
});

it("keeps what came shortly before, and its entries, until the next run", async () => {
  await write(dialog("short", "late", OLD), Date.now() * 1_000);
  await eraseTables(await store.expired(CUTOFFS));
  const { conversations, messages, changes } = await stored();
  // Until the next run: they may belong to a batch in flight.
  expect([conversations, messages]).toEqual([["short/late"], ["short/m-late"]]);
  expect(changes).toEqual(["short/late", "short/m-late"]);
});

it("keeps a record as a whole of which an older export or another handoff came shortly before", async () => {
  const exported = (id: string, version: number, handoff: string): ExportRecord =>
    conversation({ client: "short", time: DAY_0 + version }, id, OLD, OLD + version, {
      handoffs: [{ id: handoff, handoff_id: null, date_created: new Date(OLD / 1000).toISOString() }],
    });
  await write([exported("back", 2, "h"), exported("next", 1, "h1")]);
  await write([exported("back", 1, "h"), exported("next", 2, "h2")], Date.now() * 1000);
  // Dates have another clock than rows.
  await settleDates();
  await eraseTables(await store.expired(CUTOFFS));
  const rows = (columns: string, table: string): Promise<string> =>
    warehouse.sql(`SELECT ${columns} FROM ${table} FINAL ORDER BY ALL`);
  const updated = "conversation_id, toUnixTimestamp64Micro(date_updated)";
  expect(await rows(updated, "conversations")).toBe(`back\t${OLD + 2}\nnext\t${OLD + 2}`);
  expect(await rows("conversation_id, target", "handoffs")).toBe("back\th\nnext\th1\nnext\th2");
  expect(new Set((await stored())["record_dates"])).toEqual(new Set(["short/back", "short/next"]));
});

it("publishes at its end what it has deleted when it fails before the entries", async () => {
  await write(dialog("short", "old", OLD));
  await settleDates();
  const failed = await store.expired(CUTOFFS);
  await failed.erase("conversations");
  await failed.end(new AbortController().signal);
  const { conversations, changes } = await stored();
  expect(conversations).toEqual([]);
  expect(changes).toContain("short/old deleted");
});

it.skipIf(SHARDS > 1)(
  "drops parts in which all clients are expired, and cuts the rows out of the others",
  async () => {
    const old = DAY_0 - 3 * MONTH;
    // Parts of three months, which never merge with each other.
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
    expect(dropped).toBe(12);
    expect(await parts()).toBe("1");
    expect((await stored())["conversations"]).toEqual(["ever/e"]);
  },
);

describe("records with several dates", () => {
  const exported = (id: string, time: number, created: number): ExportRecord[] => [
    conversation({ client: "short", time: DAY_0 + time }, id, created, created + 40 * DAY, {
      handoffs: [{ id: `h${time}`, handoff_id: null, date_created: "2026-10-04T00:00:00Z" }],
    }),
    message({ client: "short", time: DAY_0 + time }, `m-${id}`, created, id),
  ];
  const writeAll = async (...exports: readonly ExportRecord[][]): Promise<void> => {
    for (const one of exports) await write(one);
    for (const { type, id, dateCreated } of exports.flat()) await land("short", type, id, dateCreated);
  };
  const countsOf = async (id: string): Promise<Record<string, number>> =>
    Object.fromEntries(
      Object.entries(await stored()).map(([table, rows]) => [
        table,
        rows.filter((row) => row === `short/${id}` || row === `short/m-${id}`).length,
      ]),
    );
  const NONE = {
    conversations: 0,
    conversation_updates: 0,
    handoffs: 0,
    messages: 0,
    record_dates: 0,
    landing: 0,
    end_users: 0,
    changes: 0,
  };
  const BOTH = {
    ...NONE,
    conversations: 2,
    conversation_updates: 2,
    handoffs: 2,
    messages: 2,
    record_dates: 4,
    changes: 4,
  };

  it("expire by the date of the latest export, the older or the newer export first", async () => {
    const orders = { older: [1, 2], newer: [2, 1] } as const;
    // The newest export, of time 2, has the older date of `gone` and the younger one of `here`.
    for (const [first, times] of Object.entries(orders))
      for (const time of times) {
        await writeAll(exported(`gone-${first}`, time, time === 2 ? OLD : YOUNG));
        await writeAll(exported(`here-${first}`, time, time === 2 ? YOUNG : OLD));
      }
    await writeAll(exported("plain-old", 1, OLD), exported("plain-young", 1, YOUNG));
    await eraseAll(CUTOFFS);
    for (const first of Object.keys(orders)) {
      expect(await countsOf(`gone-${first}`), first).toEqual(NONE);
      expect(await countsOf(`here-${first}`), first).toEqual({ ...BOTH, landing: 4 });
    }
    expect(await countsOf("plain-old")).toEqual(NONE);
    expect(await countsOf("plain-young")).toMatchObject({ conversations: 1, handoffs: 1, record_dates: 2 });
    expect(await warehouse.sql("SELECT count() FROM erasure_keys")).toBe("0");
    await eraseAll([{ clientId: "short", before: DAY_0 }]);
    for (const first of Object.keys(orders)) expect(await countsOf(`here-${first}`), first).toEqual(NONE);
  });

  it("are known to a reconciliation as erased under all their dates, unless they came again", async () => {
    const young = ["gone", "again"].flatMap((id) => exported(id, 1, YOUNG));
    await writeAll(young, ...["gone", "again"].map((id) => exported(id, 2, OLD)), exported("kept", 1, YOUNG));
    const begun = Date.now() * 1_000;
    await eraseAll(CUTOFFS);
    await write(exported("again", 0, YOUNG));
    const session = warehouse.session("jobs");
    const reconcile = createReconcileStore({ session, now: Date.now, holder: "test" });
    const exports = [...young, ...exported("kept", 1, YOUNG)];
    for (const type of ["conversation.exported", "message.exported"] as const) {
      const ofType = exports.filter((one) => one.type === type);
      const [gone, ...others] = await reconcile.deleted(type, ofType, begun);
      expect(gone, type).toMatchObject({ dateCreated: OLD });
      expect(gone?.deletedAt).toBeGreaterThanOrEqual(begun);
      expect(others).toEqual([null, null]);
      const later = Date.now() * 1_000 + 10 * SECOND;
      expect(await reconcile.deleted(type, ofType, later)).toEqual([null, null, null]);
    }
  });

  it("are not published as gone when the rows under their old date went before", async () => {
    await writeAll(exported("moved", 1, OLD), exported("moved", 2, YOUNG));
    for (const table of ["conversations", "conversation_updates", "handoffs"]) {
      const date = table === "handoffs" ? "conversation_date_created" : "date_created";
      await warehouse.sql(
        `ALTER TABLE ${table} DELETE WHERE ${date} = fromUnixTimestamp64Micro(${OLD}, 'UTC') SETTINGS mutations_sync = 2`,
      );
    }
    const begun = Date.now() * 1000;
    await eraseAll(CUTOFFS);
    expect(await changesSince(begun)).toBe("");
  });

  it("keep handoffs under a date without any other row, and go with them", async () => {
    await writeAll(exported("a", 2, YOUNG), exported("b", 2, OLD));
    await write(exported("a", 1, OLD));
    await write(exported("b", 1, YOUNG));
    // Read first: a mutation may evaluate again after it has deleted some rows.
    const older = await warehouse.sql(
      "SELECT toString(min(version)) FROM conversations GROUP BY conversation_id",
    );
    for (const table of ["conversations", "conversation_updates"])
      await warehouse.sql(
        `ALTER TABLE ${table} DELETE WHERE toString(version) IN ('${older.split("\n").join("', '")}')
        SETTINGS mutations_sync = 2`,
      );
    await eraseAll(CUTOFFS);
    expect(await countsOf("a")).toMatchObject({ conversations: 1, handoffs: 2, record_dates: 4 });
    expect(await countsOf("b")).toEqual(NONE);
  });

  it.skipIf(SHARDS > 1)("are in no part that is dropped whole while they are kept", async () => {
    await writeAll(exported("here", 2, YOUNG + MONTH));
    await writeAll(exported("here", 1, OLD - MONTH));
    expect(await eraseAll(CUTOFFS)).toBe(0);
    expect(await countsOf("here")).toEqual({ ...BOTH, landing: 4 });
  });

  it("stay until the next run when a row has just come, and a newer export stays that comes meanwhile", async () => {
    await writeAll(exported("fresh", 2, OLD), exported("late", 2, OLD));
    await write(exported("late", 1, YOUNG));
    await write(exported("fresh", 1, YOUNG), Date.now() * 1000);
    await settleDates();
    const expired = await store.expired(CUTOFFS);
    const [latest] = exported("late", 3, YOUNG);
    if (latest !== undefined) await write([latest], Date.now() * 1000);
    await eraseTables(expired);
    expect(await countsOf("fresh")).toMatchObject({ conversations: 2, handoffs: 2, record_dates: 4 });
    expect(
      await warehouse.sql(
        "SELECT count(), max(version) >= bitShiftLeft(toUInt128(1), 64) FROM conversations WHERE conversation_id = 'late'",
      ),
    ).toBe("1\t1");
    // The date was written before the row, in this run.
    expect(
      await warehouse.sql("SELECT count() FROM record_dates WHERE kind = 'conversation' AND id = 'late'"),
    ).toBe("1");
  });
});

it("leaves the dates of records that were added shortly before, for rows on their way", async () => {
  await write(dialog("short", "old", OLD));
  const erase = async (): Promise<string[] | undefined> => {
    await eraseTables(await store.expired(CUTOFFS));
    const { conversations, record_dates } = await stored();
    expect(conversations).toEqual([]);
    return record_dates;
  };
  expect(await erase()).toEqual(["short/m-old", "short/old"]);
  await settleDates();
  expect(await erase()).toEqual([]);
});

it("keeps an end user whose latest version is young, with all versions, and erases the others with their events", async () => {
  await write([person("back", 1, BEFORE - DAY), person("gone", 1, BEFORE - 2 * DAY)]);
  await write([person("back", 2, BEFORE), person("gone", 2, BEFORE - DAY)]);
  // An export that came late has a younger update than the latest one.
  await write([person("odd", 2, BEFORE - DAY)]);
  await write([person("odd", 1, BEFORE + DAY)]);
  for (const id of ["back", "gone", "odd"]) {
    await land("short", "end_user.exported", id, DAY_0 - 900 * DAY);
    await land("other", "end_user.exported", id, DAY_0 - 900 * DAY);
  }
  await eraseAll(CUTOFFS);
  const { end_users, landing } = await stored();
  expect(end_users).toEqual(["short/back", "short/back", "short/odd", "short/odd"]);
  expect(landing).toEqual(["other/back", "other/gone", "other/odd", "short/back", "short/odd"]);
});

it("takes away what was only masked, and leaves masked rows of others", async () => {
  await write([
    ...dialog("short", "old", BEFORE - SECOND),
    ...dialog("short", "new", BEFORE),
    ...dialog("ever", "old", BEFORE - 40 * DAY),
    person("gone", 1, BEFORE - SECOND),
    person("here", 1, BEFORE),
  ]);
  for (const table of ["conversations", "handoffs"])
    await warehouse.sql(`DELETE FROM ${table} WHERE conversation_id = 'old'`);
  await warehouse.sql("DELETE FROM end_users WHERE end_user_id = 'gone'");
  const expired = await store.expired(CUTOFFS);
  for (const table of ["conversations", "handoffs", "end_users"] as const)
    expect(await expired.count(table), table).toEqual([{ clientId: "short", rows: 1 }]);
  await expired.end(new AbortController().signal);
  await eraseAll(CUTOFFS);
  const left = (table: string): Promise<string> =>
    warehouse.sql(`SELECT client_id, count() FROM ${table} GROUP BY client_id ORDER BY client_id
      SETTINGS apply_deleted_mask = 0`);
  expect(await left("conversations")).toBe("ever\t1\nshort\t1");
  expect(await left("end_users")).toBe("short\t1");
  expect(await warehouse.sql("SELECT count() FROM erasure_keys")).toBe("0");
});

it.each([false, true])("keeps what comes behind its collection, another done: %s", async (another) => {
  const again = (id: string, version: number, created: number): Promise<void> =>
    write(dialog("short", id, created, DAY_0 + version), Date.now() * 1000);
  const ids = ["again", "back", "gone", "moved"];
  await write([...ids.flatMap((id) => dialog("short", id, OLD)), person("p", 1, OLD), person("q", 1, OLD)]);
  await settleDates();
  const paused = await store.expired(CUTOFFS);
  if (another) await eraseAll(CUTOFFS);
  const begun = Date.now() * 1000;
  await again("again", 2, OLD);
  await again("moved", 2, YOUNG);
  await again("back", 2, YOUNG);
  await again("back", 3, OLD);
  await write([person("p", 1, OLD)], Date.now() * 1000);
  await write([person("q", 2, DAY_0)]);
  await eraseTables(paused);
  const left = await stored();
  for (const table of ["conversations", "conversation_updates", "handoffs"] as const)
    expect(left[table], table).toEqual(["short/again", "short/back", "short/back", "short/moved"]);
  expect(left["end_users"]).toEqual(["short/p", "short/q"]);
  expect(new Set(left["record_dates"])).toEqual(
    new Set(["again", "back", "moved"].flatMap((id) => [`short/${id}`, `short/m-${id}`])),
  );
  const published = await changesSince(begun);
  for (const id of ["again", "back", "moved"]) expect(published).toContain(`"_id":"${id}"`);
  expect(published.split('"deleted":true').length - 1).toBe(another ? 0 : 1);
  expect(await warehouse.sql("SELECT count() FROM erasure_keys")).toBe("0");
});

it("erases events of records without any row by their own date", async () => {
  const [old, young] = [BEFORE - SECOND, BEFORE];
  await write(dialog("short", "other", young));
  for (const type of ["conversation.exported", "message.exported"]) {
    await land("short", type, "lost", old);
    await land("short", type, "young", young);
    await land("ever", type, "lost", old);
    await land("short", type, type.startsWith("m") ? "m-other" : "other", old);
  }
  await eraseAll(CUTOFFS);
  const { landing, conversations } = await stored();
  expect(landing).toEqual(["ever/lost", "ever/lost", "short/young", "short/young"]);
  expect(conversations).toEqual(["short/other"]);
});

it("works on a share of the keys at a time, and drops parts that hold those of all shares", async () => {
  const ids = Array.from({ length: 8 }, (_, at) => `c${at}`);
  await write(ids.flatMap((id) => dialog("short", id, OLD - 3 * MONTH)));
  await write([...ids.flatMap((id) => dialog("short", id, OLD)), ...dialog("ever", "c", OLD)]);
  await write([...ids, "p"].map((id) => person(id, 1, OLD)));
  await settleDates();
  const small = createRetentionStore({
    session: warehouse.session("jobs"),
    runUpload: uploadNow,
    keysAtOnce: 4,
  });
  const shares = String.raw`SELECT uniqExact(extract(command, '% [^=]*4[^=]*= \\D*(\\d+)')) FROM system.mutations
    WHERE database = currentDatabase() AND startsWith(table, 'messages') AND match(command, '% [^=]*4[^=]*= ')`;
  const expired = await small.expired(CUTOFFS);
  expect(await expired.count("messages")).toEqual([{ clientId: "short", rows: 16 }]);
  await eraseTables(expired);
  const { changes, ...left } = await stored();
  expect(Object.values(left).flat().toSorted()).toEqual(
    ["ever/c", "ever/c", "ever/c", "ever/c", "ever/m-c", "ever/m-c"].toSorted(),
  );
  expect(new Set(changes).size).toBe(2 + 17);
  expect(await warehouse.sql(shares)).toBe("4");
});

describe("keys of a run", () => {
  const erasures = () => createErasureStore({ session: warehouse.session("jobs"), runUpload: uploadNow });
  const erasure = { id: "erasure/1", erases: true, settled: Number.MAX_SAFE_INTEGER };
  const { signal } = new AbortController();

  it("are nothing to readers nor to an erasure at the same time", async () => {
    await write(dialog("short", "old", OLD));
    await settleDates();
    const expired = await store.expired(CUTOFFS);
    const keys = await warehouse.sql("SELECT count() FROM erasure_keys");
    const nothing = { conversations: 0, messages: 0, end_users: 0 };
    const run = erasures();
    expect(await run.begin(erasure)).toEqual({ requests: 0, found: 0, again: 0 });
    await run.collect(erasure);
    expect(await run.count(erasure)).toEqual(nothing);
    await run.countRows(erasure);
    expect(new Set(Object.values(await run.remaining(erasure)))).toEqual(new Set([0]));
    await run.erase(erasure, RETENTION_TABLES, signal);
    await run.publish(erasure, signal);
    await run.eraseKeys(erasure, signal);
    await run.forget(erasure, signal);
    expect(await warehouse.sql("SELECT count() FROM erasure_keys")).toBe(keys);
    expect(await changesSince(0)).toContain('"_id":"old"');
    expect(await changesSince(0)).not.toContain('"deleted":true');
    await eraseTables(expired);
    expect((await stored())["conversations"]).toEqual([]);
  });

  it("go a day after the run died, and one that was paused for so long erases nothing and says so", async () => {
    await write(dialog("short", "plain", OLD));
    // The latest export has the younger date, so nothing of it is expired.
    const dates = [YOUNG, OLD];
    for (const [time, created] of dates.entries())
      await write([conversation({ client: "short", time: DAY_0 - time }, "kept", created, created)]);
    const paused = await store.expired(CUTOFFS);
    await warehouse.sql(
      "ALTER TABLE erasure_keys UPDATE added_at = added_at - INTERVAL 25 HOUR WHERE 1 SETTINGS mutations_sync = 2",
    );
    await erasures().forget(erasure, signal);
    expect(await warehouse.sql("SELECT count() FROM erasure_keys")).toBe("0");
    const lost = { code: "keys_lost", retryable: true };
    await expect(paused.count("conversations")).rejects.toMatchObject(lost);
    await expect(paused.erase("conversations")).rejects.toMatchObject(lost);
    await paused.end(new AbortController().signal);
    expect((await stored())["conversations"]).toEqual(["short/kept", "short/kept", "short/plain"]);
  });
});

const through = (before: (name: string) => void): RetentionStore => {
  const wrap = (session: Session): Session => {
    const step =
      <A extends readonly [string, ...unknown[]], R>(send: (...args: A) => R) =>
      (...args: A): R => {
        before(args[0]);
        return send(...args);
      };
    return {
      ...session,
      with: (options) => wrap(session.with(options)),
      rows: <Row>(...args: Parameters<Session["rows"]>) => step(session.rows<Row>)(...args),
      insert: step(session.insert),
      command: step(session.command),
      commandEverywhere: step(session.commandEverywhere),
    };
  };
  return createRetentionStore({ session: wrap(warehouse.session("jobs")), runUpload: uploadNow });
};

it("ends alike when runs are killed at one statement after the other", async () => {
  const killed = new Error("killed");
  let left = Infinity;
  const mortal = through(() => {
    left -= 1;
    if (left < 0) throw killed;
  });
  await write([...dialog("short", "plain", OLD), person("p", 1, OLD)]);
  await write([...dialog("short", "here", YOUNG), ...dialog("ever", "plain", OLD)]);
  await write(dialog("short", "moved", YOUNG, DAY_0));
  await write(dialog("short", "moved", OLD, DAY_0 + 1));
  await land("short", "conversation.exported", "moved", YOUNG);
  await land("short", "end_user.exported", "p", OLD);
  await settleDates();
  const attempt = async (): Promise<boolean> => {
    try {
      await eraseTables(await mortal.expired(CUTOFFS));
      return true;
    } catch (error) {
      if (error !== killed) throw error;
      return false;
    }
  };
  let statements = 0;
  for (let ends = false; !ends; statements += 1) {
    left = statements;
    ends = await attempt();
    // Readers never get a former date.
    const isOld = `date_created < fromUnixTimestamp64Micro(${BEFORE}, 'UTC')`;
    const moved = `SELECT countIf(NOT ${isOld}) = 0 OR countIf(${isOld}) > 0
      FROM conversations WHERE conversation_id = 'moved'`;
    expect(await warehouse.sql(moved), `killed at ${statements}`).toBe("1");
  }
  expect(statements).toBeGreaterThan(40);
  const { changes, record_dates, ...tables } = await stored();
  expect(tables).toEqual({
    conversations: ["ever/plain", "short/here"],
    conversation_updates: ["ever/plain", "short/here"],
    handoffs: ["ever/plain", "short/here"],
    messages: ["ever/m-plain", "short/m-here"],
    landing: [],
    end_users: [],
  });
  const deleted = ["m-moved", "m-plain", "moved", "p", "plain"].map((id) => `short/${id} deleted`);
  expect(new Set(changes?.filter((one) => one.endsWith(" deleted")))).toEqual(new Set(deleted));
  expect(new Set(record_dates)).toEqual(
    new Set(["ever/m-plain", "ever/plain", "short/here", "short/m-here", "short/m-moved", "short/moved"]),
  );
});

it("waits for a deletion that outlived its run before it publishes", async () => {
  const undone = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done";
  // In a part with a row that stays, which is rewritten.
  await write([person("short", 1, OLD), person("ever", 1, OLD, "ever")]);
  const stop = new AbortController();
  const expired = await store.expired(CUTOFFS, stop.signal);
  await warehouse.sql("SYSTEM STOP MERGES end_users");
  let next: Promise<number>;
  try {
    const erasing = expired.erase("end_users").catch((error: unknown) => String(error));
    await until("it deletes", 10_000, async () => (await warehouse.sql(undone)) !== "0");
    stop.abort(new Error("the process stops"));
    expect(await erasing).toMatch(/AbortError|the process stops/);
    let asked = 0;
    const second = through((name) => void (asked += name === "deletion.under_way" ? 1 : 0));
    next = second.expired(CUTOFFS).then(eraseTables);
    await until("the next run waits", 20_000, () => Promise.resolve(asked > 1));
    expect((await stored())["changes"]).toEqual(["ever/ever", "short/short"]);
  } finally {
    await warehouse.sql("SYSTEM START MERGES end_users");
  }
  await next;
  const { end_users, changes } = await stored();
  expect(end_users).toEqual(["ever/ever"]);
  expect(changes).toEqual(["ever/ever", "short/short deleted"]);
  await expired.end(new AbortController().signal);
  expect(await warehouse.sql("SELECT count() FROM erasure_keys")).toBe("0");
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
});
