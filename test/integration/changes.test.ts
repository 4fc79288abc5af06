import { setImmediate as nextTurn } from "node:timers/promises";
import type { ExportRecord, RecordKind } from "@conversation-export/domain";
import type { ChangePage, PagePosition, PageQuery } from "@conversation-export/warehouse";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom } from "../sample/values/random.ts";
import { bySize, seedOfRun } from "../system/size.ts";
import { conversation, DAY, endUser, message, SECOND } from "../warehouse/records.ts";
import { readPage } from "../warehouse/walk.ts";
import { startWarehouse, type Warehouse } from "../warehouse/warehouse.ts";

const CLIENT = "acme";
const IDS = bySize(40, 400);
const ROUNDS = bySize(4, 40);
const BATCHES = bySize(8, 30);
const KINDS = ["conversation", "message", "end_user"] as const;
/** Recent, since deletions are kept for some weeks. */
const START = Math.floor(Date.now() / 86_400_000) * DAY - 5 * DAY;
const WINDOW: PageQuery = {
  clientId: CLIENT,
  since: START - 100 * DAY,
  to: START + 100 * DAY,
  pageSize: 10_000,
  wholeTies: false,
};
const BEGIN: PagePosition = { date: 0, id: "" };

let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = await startWarehouse();
  await warehouse.sql("SYSTEM START MERGES");
});
afterAll(() => warehouse?.stop());

type Text = { readonly _id?: string; readonly end_user_id?: string; readonly deleted?: boolean };
const idOf = (text: string): string => {
  const { _id, end_user_id: endUserId } = JSON.parse(text) as Text;
  return _id ?? endUserId ?? "";
};

const changesOf = async (page: ChangePage): Promise<string[]> => {
  const records = await readPage(page);
  expect(records.length).toBe(page.end().rows);
  return records;
};

const createFollower = (kind: RecordKind) => {
  const held = new Map<string, string>();
  let after = BEGIN;
  let entries = 0;
  return {
    held,
    entries: () => entries,
    turn: async (stableUpTo: number, pageSize: number): Promise<boolean> => {
      const page = await warehouse.reader.changes({ clientId: CLIENT, kind, after, stableUpTo, pageSize });
      const records = await changesOf(page);
      expect(new Set(records.map(idOf)).size).toBe(records.length);
      expect(records.length).toBeLessThanOrEqual(pageSize);
      for (const text of records) {
        entries += 1;
        if ((JSON.parse(text) as Text).deleted === true) held.delete(idOf(text));
        else held.set(idOf(text), text);
      }
      const { next, isLast } = page.end();
      after = next;
      return isLast;
    },
  };
};

const listOf = async (kind: RecordKind): Promise<string[]> => {
  if (kind === "conversation") return readPage(await warehouse.reader.conversationsByCreation(WINDOW));
  if (kind === "message") return readPage(await warehouse.reader.messagesByCreation(WINDOW));
  return readPage(await warehouse.reader.endUsers({ clientId: CLIENT, limit: 10_000 }));
};

test("a reader that applies changes holds what the lists hold, whatever came late or twice, or was deleted", async () => {
  const random = createRandom(seedOfRun("changes"), "writers");
  const followers = KINDS.map((kind) => ({ kind, ...createFollower(kind) }));
  let clock = START;
  let offset = 0;

  const recordOf = (kind: RecordKind): ExportRecord => {
    offset += 1;
    const number = random.int(IDS);
    const created = START - 50 * DAY + random.int(3) * DAY + random.int(2);
    // A version may be older than a stored one.
    const at = { client: CLIENT, time: START - DAY + random.int(1_000), offset };
    if (kind === "message")
      return message(at, `m${number}`, created, `c${random.int(IDS)}`, { review: random.int(5) });
    if (kind === "end_user") return endUser(at, `u${number}`, { full_name: `export ${offset}` });
    const handoff = {
      name: "Desk",
      handoff_id: random.pick(["h1", "h2", "h3"]),
      id: `a${number}`,
      date_created: new Date((START + random.int(5) * SECOND) / 1000).toISOString(),
      reason_code: null,
      reasoning: `export ${offset}`,
    };
    return conversation(at, `c${number}`, created, created + random.int(10) * DAY, { handoffs: [handoff] });
  };

  /** Broken-off batches are written again with a later stamp, as ingest does. */
  const write = async (inFlight: Set<number>): Promise<void> => {
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const kind = random.pick([...KINDS]);
      const records = Array.from({ length: 1 + random.int(5) }, () => recordOf(kind));
      for (const statements of random.int(4) === 0 ? [random.int(4), Infinity] : [Infinity]) {
        clock += 1 + random.int(20);
        const at = clock;
        inFlight.add(at);
        await warehouse.write(records, at, statements);
        inFlight.delete(at);
      }
    }
  };

  const remove = async (): Promise<void> => {
    const gone = Array.from({ length: 3 }, () => random.int(IDS));
    for (const number of gone) {
      clock += 10;
      const dates = await warehouse.sql(
        `SELECT DISTINCT toUnixTimestamp64Micro(date_created) FROM conversations WHERE conversation_id = 'c${number}'`,
      );
      for (const table of ["conversations", "conversation_updates", "handoffs"])
        await warehouse.sql(
          `ALTER TABLE ${table} DELETE WHERE conversation_id = 'c${number}' SETTINGS mutations_sync = 2`,
        );
      await warehouse.sql(
        `ALTER TABLE end_users DELETE WHERE end_user_id = 'u${number}' SETTINGS mutations_sync = 2`,
      );
      const rows = [
        ...dates
          .split("\n")
          .filter(Boolean)
          .map(
            (date) =>
              `('${CLIENT}', 'conversation', fromUnixTimestamp64Micro(${clock}), 'c${number}', fromUnixTimestamp64Micro(${date}), true)`,
          ),
        `('${CLIENT}', 'end_user', fromUnixTimestamp64Micro(${clock}), 'u${number}', 0, true)`,
      ];
      await warehouse.sql(
        `INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted) VALUES ${rows.join()}`,
      );
    }
  };

  for (let round = 0; round < ROUNDS; round += 1) {
    const inFlight = new Set<number>();
    let writing = true;
    const stableUpTo = (): number => Math.min(...inFlight, clock + 1);
    const follow = async ({ turn }: (typeof followers)[number]): Promise<void> => {
      while (writing) {
        await turn(stableUpTo(), 1 + random.int(40));
        await nextTurn();
      }
    };
    await Promise.all([
      Promise.all([write(inFlight), write(inFlight)]).finally(() => {
        writing = false;
      }),
      ...followers.map(follow),
    ]);
    if (round % 2 === 1) await remove();
    // Entries of a batch lie up to its number of records after its stamp.
    clock += 100;
    for (const { kind, held, turn } of followers) {
      while (!(await turn(clock, 1 + random.int(40))));
      const list = await listOf(kind);
      expect([...held.values()].sort(), `${kind}, round ${round}`).toEqual(list.sort());
    }
  }
  const fresh = createFollower("conversation");
  while (!(await fresh.turn(clock, 7)));
  expect([...fresh.held.values()].sort()).toEqual((await listOf("conversation")).sort());
  console.log(
    `entries: ${followers.map((one) => one.entries()).join(", ")}, afresh ${fresh.entries()} of ${fresh.held.size}`,
  );
});

test("a record that changes all the time is given out at each end, however late it changed", async () => {
  const write = (offset: number, at: number): Promise<void> =>
    warehouse.write([message({ client: "again", time: START, offset }, "m", START - DAY, "c")], at);
  await write(1, START);
  await write(2, START + 10 * SECOND);
  const query = { clientId: "again", kind: "message", after: BEGIN, pageSize: 10 } as const;
  for (const stableUpTo of [START + SECOND, START + 20 * SECOND]) {
    const page = await warehouse.reader.changes({ ...query, stableUpTo });
    expect((await changesOf(page)).map(idOf)).toEqual(["m"]);
    expect(page.end().isLast).toBe(true);
  }
});

test("a deletion is published though an entry behind it has no row and lies on a later page", async () => {
  const write = (id: string, at: number, statements = Infinity): Promise<void> =>
    warehouse.write([message({ client: "cut", time: START }, id, START - DAY, "c")], at, statements);
  await write("gone", START);
  await warehouse.sql("ALTER TABLE messages DELETE WHERE message_id = 'gone' SETTINGS mutations_sync = 2");
  await warehouse.sql(`INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted)
    VALUES ('cut', 'message', fromUnixTimestamp64Micro(${START + SECOND}), 'gone', fromUnixTimestamp64Micro(${START - DAY}), true)`);
  await write("kept", START + 2 * SECOND);
  // The messages table rejects the row: its date and its entry stay.
  await write("gone", START + 3 * SECOND, 2);
  const seen: string[] = [];
  let after = BEGIN;
  for (let isLast = false; !isLast; ) {
    const page = await warehouse.reader.changes({
      clientId: "cut",
      kind: "message",
      after,
      stableUpTo: START + 10 * SECOND,
      pageSize: 1,
    });
    for (const text of await changesOf(page)) {
      seen.push(`${idOf(text)} ${String((JSON.parse(text) as Text).deleted === true)}`);
    }
    ({ next: after, isLast } = page.end());
  }
  expect(seen).toEqual(["gone true", "kept false"]);
});

test("a deletion has the id as escapes where programs would end a line", async () => {
  const ids = [
    "\u2028",
    "\u2029",
    "\u0085",
    "a\u0085b\u2028c\u2029d",
    "\n\r\v\f\u001c\u001e\u0000\u007f",
    'é😀"\\/',
  ];
  const rows = ids.flatMap((_, at) =>
    KINDS.map(
      (kind) =>
        `('lines', '${kind}', fromUnixTimestamp64Micro(${START + at}), unhex('${Buffer.from(ids[at] ?? "").toString("hex")}'), fromUnixTimestamp64Micro(${START - DAY}), true)`,
    ),
  );
  await warehouse.sql(
    `INSERT INTO changes (client_id, kind, stored_at, id, date_created, deleted) VALUES ${rows.join(", ")}`,
  );
  for (const kind of KINDS) {
    const query = { clientId: "lines", kind, after: BEGIN, pageSize: 10 } as const;
    const records = await changesOf(await warehouse.reader.changes({ ...query, stableUpTo: START + SECOND }));
    expect(records.map(idOf)).toEqual(ids);
    for (const record of records) expect(record).not.toMatch(/[^\P{Cc}\u007f]|[\u2028\u2029]/u);
  }
});
