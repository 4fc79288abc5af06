import type { ExportRecord } from "@conversation-export/domain";
import { createLogger, createMetrics, type ServiceError } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createSubjectHash } from "./subject-hash.ts";
import { createSuppressionGate, type SuppressionGate } from "./suppression-gate.ts";
import type { SuppressionRow } from "./suppression-key.ts";
import { storeOf } from "./suppression-store.fixture.ts";

/** Short, so that it is renewed every few milliseconds; what counts as time is set by the tests. */
const LEASE_MS = 60;
const SECRET = "a secret of the tests";
const hash = createSubjectHash(SECRET);
/** How far the clock of ClickHouse is ahead of ours. */
const AHEAD = 5_000_000;

const conversation = (id: string, chatterId = "", dateCreated = 10): ExportRecord =>
  ({
    type: "conversation.exported",
    clientId: "acme",
    id,
    dateCreated,
    columns: { chatterId, endUserId: "" },
  }) as never;
const endUser = (id: string, email: string): ExportRecord =>
  ({ type: "end_user.exported", clientId: "acme", id, dateCreated: 10, email }) as never;
const message = (id: string, conversationId: string): ExportRecord =>
  ({
    type: "message.exported",
    clientId: "acme",
    id,
    conversationId,
    dateCreated: 10,
    columns: { chatterId: "" },
  }) as never;

const suppressed = (kind: SuppressionRow["kind"], value: string): SuppressionRow => ({
  clientId: "acme",
  kind,
  value,
  createdBefore: 20,
});

/** A gate, not started yet, between a Redis and a ClickHouse that do as they are told. */
const createGate = (secretInUse = hash.ofSecret) => {
  const world = {
    generation: 1,
    time: 1_000,
    rows: [] as SuppressionRow[],
    renewals: [] as number[],
    isAway: false,
    keeps: true,
    heldSince: 1,
    /** What the lease answers; without a number what it was told. */
    uploadFrom: null as number | null,
    told: [] as number[],
    oldest: null as number | null,
    unsettled: Promise.resolve(),
    found: [] as SuppressionRow[],
    lost: null as ServiceError | null,
    released: 0,
    loads: [] as (number | null)[],
    /** How long answers of ClickHouse are on their way. */
    answerMs: 0,
    offset: AHEAD,
    answers: Promise.resolve(),
    storing: Promise.resolve(),
  };
  const gate = createSuppressionGate({
    lease: {
      generation: async () => world.generation,
      renew: async ({ confirmed, uploadFrom }) => {
        if (world.isAway) throw new Error("away");
        world.renewals.push(confirmed);
        world.told.push(uploadFrom);
        if (!world.keeps) world.heldSince += 1;
        return {
          generation: world.generation,
          heldSince: world.heldSince,
          uploadFrom: world.uploadFrom ?? uploadFrom,
        };
      },
      release: async () => {
        world.released += 1;
      },
    },
    leaseMs: LEASE_MS,
    maxHeld: 100_000,
    store: {
      ...storeOf(() => [...world.rows, ...world.found]),
      clients: async (since) => {
        world.loads.push(since);
        await world.answers;
        return storeOf(() => world.rows).clients(null);
      },
      hashes: async (take, options) => {
        await world.answers;
        return storeOf(() => world.rows).hashes(take, options);
      },
      add: async (rows) => {
        await world.storing;
        world.found.push(...rows);
      },
      claimSecret: async () => secretInUse,
      serverTime: async () => {
        await world.answers;
        world.time += world.answerMs;
        return world.time + world.offset;
      },
    },
    secret: SECRET,
    service: "test",
    now: () => world.time,
    settled: () => world.unsettled,
    oldestUpload: () => world.oldest,
    onLost: (error) => {
      world.lost = error;
    },
    metrics: createMetrics({ service: "test" }),
    log: createLogger({ service: "test", level: "silent" }),
  });
  return { gate, world };
};

const startGate = async (secretInUse = hash.ofSecret) => {
  const made = createGate(secretInUse);
  await made.gate.start();
  return made;
};

const untilTrue = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  await expect.poll(() => condition()).toBe(true);
};

const suppresses = async (gate: SuppressionGate, record: ExportRecord): Promise<boolean> =>
  (await gate.suppresses([record]))[0] === true;
const wouldSuppress = async (gate: SuppressionGate, record: ExportRecord): Promise<boolean> =>
  (await gate.wouldSuppress([record]))[0] === true;

const isWaiting = async (promise: Promise<unknown>): Promise<boolean> => {
  const waiting = Symbol();
  return (await Promise.race([promise, Promise.resolve(waiting)])) === waiting;
};
const forever = new AbortController().signal;

it("reads the suppressions before it opens, and refuses another secret", async () => {
  const { gate, world } = await startGate();
  expect(world.renewals.at(0)).toBe(1);
  expect(gate.isOpen()).toBe(true);
  // Two thirds of the lease, by the other clock.
  expect((await gate.untilOpen(forever)).notAfter).toBe(world.time + AHEAD + 40);
  await expect(startGate("of another secret")).rejects.toMatchObject({ code: "suppression_secret" });
});

it("holds no lease before it has read, and reads again what was added meanwhile", async () => {
  const { gate, world } = createGate();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.answers = promise;
  const started = gate.start();
  await new Promise((done) => setTimeout(done, LEASE_MS));
  expect(world.renewals).toEqual([]);
  expect(gate.isOpen()).toBe("the suppressions are not read yet");
  // An erasure that has nobody to wait for, after the present generation was asked for.
  world.answers = Promise.resolve();
  const answered = Promise.withResolvers<void>();
  world.unsettled = answered.promise;
  resolve();
  await untilTrue(() => world.loads.length === 1);
  world.rows = [suppressed("conversation", "c")];
  world.generation = 2;
  answered.resolve();
  await started;
  expect(world.renewals.slice(0, 2)).toEqual([1, 2]);
  expect(await suppresses(gate, conversation("c"))).toBe(true);
  await gate.stop();
});

it("confirms a generation only when what it let through before is settled", async () => {
  const { gate, world } = await startGate();
  const written = Promise.withResolvers<void>();
  world.unsettled = written.promise;
  expect(await suppresses(gate, conversation("c"))).toBe(false);
  world.rows = [suppressed("conversation", "c")];
  world.generation = 2;
  await untilTrue(() => suppresses(gate, conversation("c")));
  const before = world.renewals.length;
  await untilTrue(() => world.renewals.length > before + 5);
  expect(gate.isOpen()).toBe(true);
  expect(new Set(world.renewals.slice(before))).toEqual(new Set([1]));
  written.resolve();
  await untilTrue(() => world.renewals.at(-1) === 2);
  // From the start, then what may be new.
  expect(world.loads).toEqual([null, 1_000 + AHEAD - 600_000]);
});

it("renews its lease while ClickHouse does not answer", async () => {
  const { gate, world } = await startGate();
  const renewed = (): Promise<unknown> => {
    const before = world.renewals.length;
    return untilTrue(() => world.renewals.length > before + 2);
  };
  world.answers = new Promise(() => {});
  // Its clock is to be measured, and its suppressions are to be read.
  world.time += 10_001;
  await renewed();
  world.generation = 2;
  await untilTrue(() => world.loads.length === 2);
  for (let half = 0; half < 5; half += 1) {
    world.time += LEASE_MS / 2;
    await renewed();
  }
  expect(gate.isOpen()).toBe(true);
  expect(world.renewals.at(-1)).toBe(1);
});

it("takes no clock from an answer that was long on its way", async () => {
  const { gate, world } = await startGate();
  const offset = async (): Promise<number> => {
    const renewed = world.renewals.length;
    await untilTrue(() => world.renewals.length > renewed + 3);
    return (await gate.untilOpen(forever)).notAfter - world.time;
  };
  Object.assign(world, { answerMs: LEASE_MS / 5, offset: 0, time: world.time + 10_001 });
  expect(await offset()).toBeGreaterThan(AHEAD - LEASE_MS * 10);
  world.answerMs = 0;
  expect(await offset()).toBe(40);
});

it("tells when what it has found is stored, and drops nothing of it", async () => {
  const { gate, world } = await startGate();
  world.rows = [suppressed("conversation", "c")];
  world.generation = 2;
  await untilTrue(() => wouldSuppress(gate, conversation("c")));
  await gate.foundStored();
  expect(await wouldSuppress(gate, message("looked-at", "c"))).toBe(true);
  const first = Promise.withResolvers<void>();
  world.storing = first.promise;
  const children = Array.from({ length: 12_000 }, (_, at) => message(`m${at}`, "c"));
  expect(new Set(await gate.suppresses(children))).toEqual(new Set([true]));
  const stored = gate.foundStored();
  expect(await isWaiting(stored)).toBe(true);
  world.storing = Promise.reject(new Error("away"));
  world.storing.catch(() => undefined);
  first.resolve();
  await stored;
  expect(world.found).toHaveLength(12_000);
  expect(await suppresses(gate, message("later", "c"))).toBe(true);
  await expect(gate.foundStored()).rejects.toThrow("away");
  world.storing = Promise.resolve();
  await gate.foundStored();
  expect(world.found.at(-1)).toMatchObject({ kind: "message", value: "later" });
  expect(world.found).toHaveLength(12_001);
});

/** Until the process has renewed its lease some more times, with its clock measured anew if that was due. */
const someRenewals = async ({ told }: { readonly told: readonly number[] }): Promise<void> => {
  const before = told.length;
  await untilTrue(() => told.length > before + 5);
};

it("gives instants of upload that advance, whatever ClickHouse's clock does", async () => {
  const { gate, world } = await startGate();
  const before = gate.uploadTime();
  Object.assign(world, { offset: 0, time: world.time + 10_001 });
  await someRenewals(world);
  // By the other clock, which has gone back, it is long before.
  expect((await gate.untilOpen(forever)).notAfter).toBe(world.time + 40);
  const later = [gate.uploadTime(), gate.uploadTime()] as const;
  expect(later[0]).toBeGreaterThan(before);
  expect(later[1]).toBeGreaterThan(later[0]);
  world.time += 2 * AHEAD;
  expect(gate.uploadTime()).toBe(world.time * 1_000);
});

it("begins later than any reader may be when it takes its lease", async () => {
  const { gate, world } = await startGate();
  const { uploadFrom } = await gate.untilOpen(forever);
  expect(uploadFrom).toBeGreaterThanOrEqual((world.time + AHEAD + 2_000) * 1_000);
  expect(gate.uploadTime()).toBeGreaterThanOrEqual(uploadFrom);
});

it("tells its lease the earliest instant that it may still use", async () => {
  const { gate, world } = await startGate();
  for (const oldest of [null, gate.uploadTime() - 7_000_000, null]) {
    world.oldest = oldest;
    world.time += 10;
    const before = gate.uploadTime();
    await someRenewals(world);
    const told = world.told.at(-1) ?? 0;
    if (oldest === null) expect(told).toBeGreaterThan(before);
    else expect(told).toBe(oldest);
    expect(gate.uploadTime()).toBeGreaterThan(told);
  }
});

it("uploads nothing before what readers have passed when its lease was not kept", async () => {
  const { gate, world } = await startGate();
  const passed = gate.uploadTime() + 3_600_000_000;
  // A lease that was kept begins where it did.
  world.uploadFrom = passed;
  await someRenewals(world);
  expect(gate.uploadTime()).toBeLessThan(passed);
  world.keeps = false;
  await someRenewals(world);
  world.keeps = true;
  const { uploadFrom } = await gate.untilOpen(forever);
  expect(uploadFrom).toBeGreaterThanOrEqual(passed);
  expect(gate.uploadTime()).toBeGreaterThanOrEqual(uploadFrom);
  // It does not go down again, and Redis may have forgotten it.
  Object.assign(world, { keeps: false, uploadFrom: 0 });
  await someRenewals(world);
  expect((await gate.untilOpen(forever)).uploadFrom).toBeGreaterThanOrEqual(uploadFrom);
});

it("closes when the lease cannot be renewed, and opens again when nothing was erased meanwhile", async () => {
  const { gate, world } = await startGate();
  world.isAway = true;
  world.time += LEASE_MS;
  expect(gate.isOpen()).toBe("the writer's lease could not be renewed");
  const open = gate.untilOpen(forever);
  const gaveUp = new AbortController();
  const stopped = gate.untilOpen(gaveUp.signal);
  expect(await isWaiting(open)).toBe(true);
  gaveUp.abort(new Error("stops"));
  await expect(stopped).rejects.toThrow("stops");
  world.isAway = false;
  world.keeps = false;
  expect((await open).notAfter).toBe(world.time + AHEAD + 40);
  expect(world.lost).toBeNull();
});

it("ends the process when an erasure went on without it", async () => {
  const { gate, world } = await startGate();
  world.isAway = true;
  world.time += LEASE_MS;
  const open = gate.untilOpen(forever);
  world.renewals.length = 0;
  Object.assign(world, { isAway: false, keeps: false, generation: 2 });
  await untilTrue(() => world.lost !== null);
  expect(world.lost).toMatchObject({ code: "writer_lease_lost" });
  expect(await isWaiting(open)).toBe(true);
  expect(gate.isOpen()).toBe("the writer's lease was lost");
  await gate.stop();
  // It does not hold up the erasure by renewing its lease.
  expect(world.renewals).toHaveLength(1);
  expect(world.released).toBe(1);
});

it("hears of a lease that had run out at a renewal whose answer was lost", async () => {
  const { gate, world } = await startGate();
  const before = (await gate.untilOpen(forever)).uploadFrom;
  Object.assign(world, { heldSince: world.heldSince + 1, time: world.time + 10 });
  await someRenewals(world);
  // Uploads begin anew, behind what readers may have passed.
  expect((await gate.untilOpen(forever)).uploadFrom).toBeGreaterThan(before);
  Object.assign(world, { heldSince: world.heldSince + 1, generation: 2 });
  await untilTrue(() => world.lost !== null);
  expect(world.lost).toMatchObject({ code: "writer_lease_lost" });
});

it("goes on with a lease that is still held after Redis was away for longer, although an erasure has begun", async () => {
  const { gate, world } = await startGate();
  world.isAway = true;
  world.time += 2 * LEASE_MS;
  expect(gate.isOpen()).toBe("the writer's lease could not be renewed");
  world.rows = [suppressed("conversation", "c")];
  Object.assign(world, { isAway: false, generation: 2 });
  await untilTrue(() => world.renewals.at(-1) === 2);
  expect(await suppresses(gate, conversation("c"))).toBe(true);
  expect(world.lost).toBeNull();
});

it("drops by conversation, message and person, when the record was created before", async () => {
  const { gate, world } = await startGate();
  world.rows = [
    suppressed("conversation", "c"),
    suppressed("message", "m"),
    suppressed("subject", hash.of("acme", "chatter_id:p")),
    suppressed("subject", hash.of("acme", "email:p@example.com")),
  ];
  world.generation = 2;
  await untilTrue(() => suppresses(gate, conversation("c")));
  expect(await suppresses(gate, conversation("c", "", 20))).toBe(false);
  expect(await suppresses(gate, conversation("d"))).toBe(false);
  expect(await suppresses(gate, conversation("e", "p"))).toBe(true);
  expect(await suppresses(gate, { ...conversation("e", "p"), clientId: "globex" })).toBe(false);
  expect(await suppresses(gate, message("m", "moved"))).toBe(true);
  expect(await suppresses(gate, message("n", "c"))).toBe(true);
  expect(await suppresses(gate, message("o", "d"))).toBe(false);
  expect(await suppresses(gate, endUser("u", " P@Example.com"))).toBe(true);
  expect(await suppresses(gate, conversation("c", "", 19))).toBe(true);
  // What was dropped for another reason than its own id is noted, once, and known from then on.
  expect(await suppresses(gate, message("of-e", "e"))).toBe(true);
  expect(await suppresses(gate, endUser("u", "other@example.com"))).toBe(true);
  expect(await suppresses(gate, conversation("e"))).toBe(true);
  await untilTrue(() => world.found.length >= 4);
  expect(world.found.map(({ kind, value }) => `${kind} ${value}`)).toEqual([
    "conversation e",
    "message n",
    "end_user u",
    "message of-e",
  ]);
});
