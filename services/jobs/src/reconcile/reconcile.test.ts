import type { BusMessage, BusRange, DeadLetter } from "@conversation-export/bus";
import { deadLetterOf, type ExportRecord } from "@conversation-export/domain";
import { type ReconcileData, reconcileJob } from "@conversation-export/queue";
import { createLogger, type Logger } from "@conversation-export/runtime";
import type { ClientRow, ReconciledUntil } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import { jobContext } from "../job-context.fixture.ts";
import { createReconcile, type ReconcileState } from "./reconcile.ts";

const HOUR = 3_600_000;
const LAST = Date.parse("2026-10-20T09:00:00Z");
const NOW = LAST + HOUR + 600_000;
const log = createLogger({ service: "test", level: "silent" });
const COMPARED = { topic: "messages", topicId: "one", partition: 0 };
const iso = (ms: number): string => new Date(ms).toISOString();

const message = (id: string, timestamp: number, client = "acme", created = timestamp) => ({
  id,
  timestamp,
  value: Buffer.from(
    JSON.stringify({
      specversion: "1.0",
      id,
      source: "/test",
      type: "message.exported",
      time: iso(timestamp),
      clientid: client,
      data: { _id: id, conversation_id: "c", date_created: iso(created) },
    }),
  ),
});

/** All but `unreadable` is readable. */
function setup(given: readonly { id: string; timestamp: number; value: Buffer | null }[]) {
  const partitions: BusMessage[][] = [[]];
  const append = ({ timestamp, value }: { timestamp: number; value: Buffer | null }, partition = 0): void => {
    const lines = (partitions[partition] ??= []);
    lines.push({
      topic: "messages",
      partition,
      offset: lines.length,
      key: null,
      value,
      headers: {},
      timestamp,
    });
  };
  for (const one of given) append(one);
  const world = {
    append,
    topicId: "one" as string | null,
    start: 0,
    committed: Number.POSITIVE_INFINITY,
    unreadable: new Set<string>(),
    suppressed: new Set<string>(),
    /** Ids asked for in clear text. */
    asked: [] as string[],
    attempt: 1,
    deadLetters: [] as { partition: number; offset: number; at: number }[],
    clients: [] as Pick<ClientRow, "clientId" | "retentionDays">[],
    until: null as ReconciledUntil | null,
    state: undefined as ReconcileState | undefined,
    savesLeft: Number.POSITIVE_INFINITY,
    deleted: null as { at: number; created: number } | null,
    now: NOW,
    serverTime: NOW,
    read: new Set<number>(),
    logged: [] as unknown[],
  };
  const reconcile = createReconcile({
    topics: new Map([["messages", "message.exported"]]),
    reader: {
      topicId: () => Promise.resolve(world.topicId),
      bounds: () =>
        Promise.resolve(
          partitions.map((lines, partition) => ({ partition, start: world.start, end: lines.length })),
        ),
      offsetsAt: (topic, ms) =>
        Promise.resolve(
          partitions.map((lines, partition) => {
            const found = lines.findIndex(({ timestamp }) => timestamp >= ms);
            return { topic, partition, offset: found < 0 ? lines.length : found };
          }),
        ),
      async *read({ from, to, onLost, ...where }: BusRange & { onLost?: (lost: BusRange) => void }) {
        if (from < world.start) onLost?.({ ...where, from, to: Math.min(world.start, to) });
        const some = (partitions[where.partition] ?? []).slice(Math.max(from, world.start), to);
        for (const { offset } of some) world.read.add(offset);
        if (some.length > 0) yield some;
      },
    },
    deadLetters: {
      async *list() {
        for (const arrival of world.deadLetters) {
          const facts = deadLetterOf({
            "dl-reason": "refused_by_warehouse",
            "dl-topic": "messages",
            "dl-partition": String(arrival.partition),
            "dl-offset": String(arrival.offset),
            "dl-time": iso(arrival.at),
          });
          const { partition, offset } = arrival;
          if (facts !== undefined) yield { ...facts, place: { partition, offset } } as DeadLetter;
        }
      },
    },
    progress: {
      fetch: () =>
        Promise.resolve({
          topicId: world.topicId,
          partitions: partitions.map((lines, partition) => ({
            partition,
            start: 0,
            end: lines.length,
            committed: world.committed,
          })),
        }),
    },
    store: {
      lacking: (_type, exports) => {
        world.asked.push(...exports.map(({ id }) => id));
        return Promise.resolve(exports.map(({ id }) => (world.unreadable.has(id) ? "messages" : null)));
      },
      present: (_type, exports) => Promise.resolve(exports.map(({ id }) => !world.unreadable.has(id))),
      deleted: (_type, exports) => {
        const { deleted } = world;
        const dates = deleted && { deletedAt: deleted.at * 1_000, dateCreated: deleted.created * 1_000 };
        return Promise.resolve(exports.map(() => dates));
      },
      sweep: () => Promise.reject(new Error("not asked for")),
      serverTime: () => Promise.resolve(world.serverTime),
      loadUntil: () => Promise.resolve(world.until),
      saveUntil: (until) => {
        world.until = until;
        return Promise.resolve();
      },
    },
    clients: { listClients: () => Promise.resolve(world.clients as ClientRow[]) },
    suppresses: async (records: readonly ExportRecord[]) => records.map(({ id }) => world.suppressed.has(id)),
    maxTimeAheadMs: 0,
    patienceMs: 0,
    now: () => world.now,
    onCompared: () => {},
  });
  const run = (data: Partial<ReconcileData> = {}) => {
    const context = jobContext<ReconcileData, ReconcileState>(reconcileJob.data.parse(data), {
      attempt: world.attempt,
      log: { ...log, warn: () => {}, error: (line: unknown) => void world.logged.push(line) } as Logger,
      state: world.state,
      save: (next) => {
        if (world.savesLeft <= 0) return Promise.reject(new Error("killed"));
        world.savesLeft -= 1;
        world.state = structuredClone(next);
        return Promise.resolve();
      },
    });
    return reconcile.run(context);
  };
  return { world, run };
}

const readableOf = (result: Awaited<ReturnType<ReturnType<typeof setup>["run"]>>): number =>
  result.hours.flatMap(({ clients }) => clients).reduce((sum, one) => sum + one.readable, 0);

it("compares the hour that was over last, by client", async () => {
  const { run } = setup([
    message("before", LAST - 1),
    message("a", LAST),
    message("b", LAST + HOUR - 1, "globex"),
    message("behind", LAST + HOUR),
  ]);
  const result = await run();
  expect(result).toMatchObject({ from: iso(LAST), to: iso(LAST + HOUR), missing: 0 });
  expect(result.hours.map(({ clients }) => clients.map((one) => [one.clientId, one.readable]))).toEqual([
    [
      ["acme", 1],
      ["globex", 1],
    ],
  ]);
});

it("tells apart why something is not readable", async () => {
  const ids = ["erased", "expired", "dead-letter", "fine"];
  const { run, world } = setup([
    ...ids.map((id) => message(id, LAST, "acme", id === "expired" ? LAST - 40 * 24 * HOUR : LAST)),
    { id: "null", timestamp: LAST, value: null },
    { id: "bad", timestamp: LAST, value: Buffer.from([0xff]) },
  ]);
  world.unreadable = new Set(["erased", "expired", "dead-letter"]);
  world.suppressed = new Set(["erased"]);
  world.clients = [{ clientId: "acme", retentionDays: 30 }];
  world.deadLetters = [{ partition: 0, offset: 2, at: LAST }];
  const { hours, missing } = await run();
  expect(missing).toBe(0);
  expect(hours).toMatchObject([
    {
      ignored: 1,
      refused: 1,
      gone: 0,
      clients: [{ readable: 1, missing: 0, deadLetters: 1, suppressed: 1, expired: 1 }],
    },
  ]);
  expect(world.asked).toEqual(["dead-letter", "fine"]);
});

it("counts what a shorter retention has erased as missing, once the retention is longer", async () => {
  const { run, world } = setup([message("erased", LAST, "acme", LAST - 40 * 24 * HOUR)]);
  world.unreadable = new Set(["erased"]);
  world.clients = [{ clientId: "acme", retentionDays: 30 }];
  expect((await run()).hours).toMatchObject([{ clients: [{ expired: 1, missing: 0 }] }]);
  for (const retentionDays of [60, null]) {
    world.clients = [{ clientId: "acme", retentionDays }];
    world.state = undefined;
    world.until = null;
    await expect(run()).rejects.toMatchObject({ code: "records_missing" });
  }
});

it("counts a record as expired that retention has erased under another date", async () => {
  const { run, world } = setup([message("corrected", LAST + 1)]);
  const old = LAST - 40 * 24 * HOUR;
  world.unreadable = new Set(["corrected"]);
  world.clients = [{ clientId: "acme", retentionDays: 30 }];
  for (const deleted of [null, { at: LAST, created: old }, { at: LAST + 2, created: LAST }]) {
    world.deleted = deleted;
    await expect(run()).rejects.toMatchObject({ code: "records_missing" });
  }
  world.deleted = { at: LAST + 2, created: old };
  expect((await run()).hours).toMatchObject([{ clients: [{ expired: 1, missing: 0 }] }]);
});

it("fails with the places of what is missing, and finds the same when it is tried again", async () => {
  const { run, world } = setup([message("x", LAST), message("lost", LAST), message("y", LAST)]);
  world.unreadable = new Set(["lost"]);
  const failure = { code: "records_missing", retryable: false };
  await expect(run()).rejects.toMatchObject({
    ...failure,
    message: expect.stringMatching(/such as messages\/0\/1 \(acme, messages\)$/) as string,
  });
  await expect(run()).rejects.toMatchObject(failure);
  world.unreadable = new Set();
  expect(readableOf(await run())).toBe(3);
});

it("names five places in its reason, each with the table that lacks it, and logs a hundred of each hour", async () => {
  const names = (hour: number) => Array.from({ length: 105 }, (_, at) => `m${hour}-${at}`);
  const { run, world } = setup(
    [1, 0].flatMap((back) => names(back).map((id) => message(id, LAST - back * HOUR))),
  );
  world.unreadable = new Set([1, 0].flatMap(names));
  const places = [0, 1, 2, 3, 4].map((offset) => `messages/0/${offset} (acme, messages)`).join(", ");
  const failure: unknown = await run({ from: iso(LAST - HOUR), to: iso(LAST + HOUR) }).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ code: "records_missing" });
  const { message: reason } = failure as Error;
  expect(reason).toMatch(/^210 exports /);
  expect(reason.endsWith(`such as ${places}`)).toBe(true);
  const hundred = (from: number) =>
    Array.from({ length: 100 }, (_, at) => ({ topic: "messages", offset: from + at, table: "messages" }));
  expect(world.logged).toMatchObject([...hundred(0), ...hundred(105)]);
});

it("fails when what was erased is readable, for good when no erasure can be going on any more", async () => {
  const { run, world } = setup([message("x", LAST), message("erased", LAST)]);
  world.suppressed = new Set(["erased"]);
  const failure = {
    code: "erased_but_readable",
    message: expect.stringMatching(/such as messages\/0\/1 \(acme\)$/) as string,
  };
  await expect(run()).rejects.toMatchObject({ ...failure, retryable: true });
  world.attempt = 10;
  await expect(run()).rejects.toMatchObject({ ...failure, retryable: false });
  world.unreadable = new Set(["erased"]);
  expect(readableOf(await run())).toBe(1);
});

it("explains nothing by a dead letter of a former topic at the same place", async () => {
  const { run, world } = setup([message("x", LAST), message("lost", LAST)]);
  world.unreadable = new Set(["lost"]);
  world.deadLetters = [{ partition: 0, offset: 1, at: LAST - HOUR }];
  await expect(run()).rejects.toMatchObject({ code: "records_missing" });
  world.deadLetters.push({ partition: 0, offset: 1, at: LAST });
  expect((await run()).hours).toMatchObject([{ clients: [{ readable: 1, deadLetters: 1 }] }]);
});

it.each([
  ["is shorter", "one", 50],
  ["has outgrown what was compared", "two", 1],
])("begins at the start of a topic that was created anew and %s, and says so", async (_, topicId, offset) => {
  const { run, world } = setup([message("x", LAST - HOUR), message("y", LAST)]);
  world.topicId = topicId;
  world.until = { until: LAST, offsets: [{ ...COMPARED, offset }] };
  const result = await run();
  expect(readableOf(result)).toBe(2);
  expect(result.hours).toMatchObject([{ madeAnew: 1 }]);
  expect(world.until).toMatchObject({ offsets: [{ topicId, offset: 2 }] });
});

it.each([
  ["of a topic that was created anew with more of them", "two", 2],
  ["that was added to a topic", "one", 0],
])("begins at the start of a partition %s", async (_, topicId, madeAnew) => {
  const { run, world } = setup([message("x", LAST)]);
  // With times of hours already compared.
  world.append(message("y", LAST - 2 * HOUR), 1);
  world.append(message("z", LAST), 1);
  world.topicId = topicId;
  world.until = { until: LAST, offsets: [{ ...COMPARED, offset: 0 }] };
  const result = await run();
  expect(readableOf(result)).toBe(3);
  expect(result.hours).toMatchObject([{ madeAnew }]);
});

it("waits for ingest, without a failure that is for good", async () => {
  const { run, world } = setup([message("x", LAST), message("y", LAST)]);
  world.committed = 1;
  await expect(run()).rejects.toMatchObject({ code: "reconcile_behind", retryable: true });
  world.committed = 2;
  expect(readableOf(await run())).toBe(2);
});

it("counts what retention has taken from the bus", async () => {
  const { run, world } = setup([message("x", LAST), message("y", LAST), message("z", LAST)]);
  world.start = 2;
  expect((await run()).hours).toMatchObject([{ gone: 2, clients: [{ readable: 1 }] }]);
});

it("goes on by the clock behind the last message that was compared, whatever their times", async () => {
  const { run, world } = setup([message("x", LAST - 2 * HOUR)]);
  world.until = { until: LAST - 2 * HOUR, offsets: [{ ...COMPARED, offset: 0 }] };
  expect(readableOf(await run())).toBe(1);
  expect(world.until).toEqual({
    until: LAST + HOUR,
    offsets: [{ ...COMPARED, offset: 1 }],
  });
  world.state = undefined;
  // Arrives hours after its producer's time.
  world.append(message("late", LAST - HOUR));
  world.append(message("then", LAST + HOUR + 1));
  world.until = { ...world.until, until: LAST };
  const result = await run();
  expect(readableOf(result)).toBe(1);
  expect(world.until).toMatchObject({ until: LAST + HOUR, offsets: [{ offset: 2 }] });
});

it.each([
  ["late messages", 0],
  ["a partition that was added", 1],
])("compares %s again when it is tried again", async (_, partition) => {
  const { run, world } = setup([message("x", LAST - 2 * HOUR)]);
  world.append(message("late", LAST - HOUR), partition);
  world.append(message("y", LAST), partition);
  world.until = { until: LAST, offsets: [{ ...COMPARED, offset: 1 }] };
  world.unreadable = new Set(["late"]);
  for (const attempt of [1, 2, 3]) {
    world.attempt = attempt;
    await expect(run()).rejects.toMatchObject({ code: "records_missing" });
  }
  world.unreadable = new Set();
  expect(readableOf(await run())).toBe(2);
});

it("never goes back when a producer's clock runs ahead", async () => {
  const { run, world } = setup([message("ahead", LAST + 5 * HOUR), message("x", LAST), message("y", LAST)]);
  world.until = { until: LAST, offsets: [{ ...COMPARED, offset: 2 }] };
  await run();
  expect(world.until).toMatchObject({ until: LAST + HOUR, offsets: [{ offset: 2 }] });
});

it.each([0, 1, 2])("ends as an undisturbed run when it dies after %d hours", async (saves) => {
  const { run, world } = setup([0, 1, 2].map((hour) => message(`m${hour}`, LAST + (hour - 2) * HOUR)));
  const window = { from: iso(LAST - 2 * HOUR), to: iso(LAST + HOUR) };
  world.savesLeft = saves;
  await expect(run(window)).rejects.toThrow("killed");
  world.savesLeft = Number.POSITIVE_INFINITY;
  const result = await run(window);
  expect(result.hours.map(({ hour, clients }) => [hour, clients[0]?.readable])).toEqual([
    [iso(LAST - 2 * HOUR), 1],
    [iso(LAST - HOUR), 1],
    [iso(LAST), 1],
  ]);
});

it.each([
  [{ from: iso(LAST), to: iso(LAST) }, "no_hour_over", "has no hour"],
  [{ from: iso(NOW - 60_000) }, "no_hour_over", `the last one was over at ${iso(LAST + HOUR)}`],
  [{ from: iso(LAST - 1_000 * HOUR), to: iso(LAST) }, "reconcile_window", "at most 744 hours"],
])("refuses the window %j", async (window, code, text) => {
  await expect(setup([]).run(window)).rejects.toMatchObject({
    code,
    retryable: false,
    message: expect.stringContaining(text) as string,
  });
});

it("compares nothing by the clock when no hour is over since the last time", async () => {
  const { run, world } = setup([message("x", LAST)]);
  await run();
  world.state = undefined;
  expect(await run()).toMatchObject({ from: iso(LAST + HOUR), to: iso(LAST + HOUR), hours: [], missing: 0 });
});

it.each<[string, Partial<ReconcileData>, number]>([
  ["one client", { clientId: "globex" }, LAST],
  ["what was before an instant", { to: iso(LAST) }, LAST - HOUR],
])("compares one hour when it is asked for %s only", async (_, asked, hour) => {
  const { run, world } = setup(
    [2, 1, 0].flatMap((back) => [
      message(`a${back}`, LAST - back * HOUR),
      message(`b${back}`, LAST - back * HOUR, "globex"),
    ]),
  );
  world.unreadable = new Set(asked.clientId === undefined ? [] : ["a0"]);
  const result = await run(asked);
  expect(result).toMatchObject({ from: iso(hour), to: iso(hour + HOUR) });
  expect(readableOf(result)).toBe(asked.clientId === undefined ? 2 : 1);
  expect(world.until).toBeNull();
});

it("continues by the clock where the last run ended, up to a week back", async () => {
  const { run, world } = setup([message("x", LAST - 7 * 24 * HOUR), message("y", LAST)]);
  const week = 7 * 24 * HOUR;
  for (const [until, from] of [
    [LAST + HOUR - week, LAST + HOUR - week],
    [LAST - week, LAST + HOUR - week],
    [LAST - 10 * week, LAST + HOUR - week],
    [LAST - HOUR, LAST - HOUR],
  ] as const) {
    world.until = { until, offsets: [{ ...COMPARED, offset: 0 }] };
    world.state = undefined;
    const result = await run();
    expect(result).toMatchObject({ from: iso(from), to: iso(LAST + HOUR) });
    expect(result.hours).toHaveLength((LAST + HOUR - from) / HOUR);
  }
});

const DAY = 24 * HOUR;

it.each([
  8 * DAY,
  -8 * DAY,
])("compares nothing by a clock that is %d ms ahead of ClickHouse's", async (ahead) => {
  const { run, world } = setup([message("x", LAST)]);
  world.until = { until: LAST, offsets: [{ ...COMPARED, offset: 0 }] };
  world.now = NOW + ahead;
  await expect(run()).rejects.toMatchObject({ code: "clock_ahead", retryable: false });
  expect(world.until).toMatchObject({ until: LAST });
  world.now = NOW;
  expect(readableOf(await run())).toBe(1);
  expect(world.until).toMatchObject({ until: LAST + HOUR });
});

it("leaves no message out after both clocks were ahead", async () => {
  const { run, world } = setup([message("x", LAST), message("y", LAST + HOUR)]);
  world.until = { until: LAST, offsets: [{ ...COMPARED, offset: 0 }] };
  world.now = world.serverTime = NOW + 2 * DAY;
  await run();
  expect([...world.read]).toEqual([0, 1]);
  world.append(message("z", LAST + HOUR + 1));
  world.append(message("behind", LAST + 2 * HOUR));
  world.now = world.serverTime = NOW + HOUR;
  world.state = undefined;
  expect(readableOf(await run())).toBe(1);
  expect(world.until).toMatchObject({ until: LAST + 2 * HOUR, offsets: [{ offset: 3 }] });
  world.now = world.serverTime = NOW + 2 * HOUR;
  world.state = undefined;
  await run();
  expect([...world.read]).toEqual([0, 1, 2, 3]);
});
