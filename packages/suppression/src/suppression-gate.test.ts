import type { ExportRecord, Suppression, WriteTicket } from "@conversation-export/domain";
import { createLogger, createMetrics, type ServiceError } from "@conversation-export/runtime";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createSubjectHash } from "./subject-hash.ts";
import { createSuppressionGate, type SuppressionGate } from "./suppression-gate.ts";
import { storeOf } from "./suppression-store.fixture.ts";

const SECRET = "a secret of the tests";
const hash = createSubjectHash(SECRET);
/** ms */
const START = 5_000_000;

const conversation = (id: string, chatterId = "", dateCreated = 10): ExportRecord =>
  ({
    type: "conversation.exported",
    clientId: "acme",
    id,
    dateCreated,
    conversationId: id,
    columns: [chatterId, ""],
  }) as never;
const endUser = (id: string, email: string): ExportRecord =>
  ({
    type: "end_user.exported",
    clientId: "acme",
    id,
    dateCreated: 10,
    conversationId: "",
    columns: [email, []],
  }) as never;
const message = (id: string, conversationId: string): ExportRecord =>
  ({
    type: "message.exported",
    clientId: "acme",
    id,
    conversationId,
    dateCreated: 10,
    columns: [conversationId, "", "", ""],
  }) as never;

const suppressed = (kind: Suppression["kind"], value: string): Suppression => ({
  clientId: "acme",
  kind,
  value,
  createdBefore: 20,
});

const createGate = (secretInUse = hash.ofSecret) => {
  const world = {
    generation: 1,
    /** The least next stamp, µs. */
    stamp: START * 1_000,
    /** ms */
    time: START,
    rows: [] as Suppression[],
    found: [] as Suppression[],
    lost: null as ServiceError | null,
    /** ms; null: from the start. */
    loads: [] as (number | null)[],
    asked: [] as string[],
    secretInUse,
    /** Late answers show what was stored when asked. */
    answers: Promise.resolve(),
  };
  const gate = createSuppressionGate({
    stamps: {
      take: async () => {
        world.asked.push("ticket");
        return { stamp: world.stamp, generation: world.generation };
      },
      look: async () => ({ generation: world.generation }),
    },
    maxHeld: 100_000,
    store: {
      ...storeOf(() => [...world.rows, ...world.found]),
      clients: async (since) => {
        world.loads.push(since);
        world.asked.push("suppressions");
        const rows = world.rows.slice();
        await world.answers;
        return storeOf(() => rows).clients(null);
      },
      hashes: async (take, options) => {
        const rows = world.rows.slice();
        await world.answers;
        return storeOf(() => rows).hashes(take, options);
      },
      addFound: async (rows) => {
        world.found.push(...rows);
      },
      claimSecret: async () => world.secretInUse,
      serverTime: async () => world.time,
    },
    secret: SECRET,
    onLost: (error) => {
      world.lost = error;
    },
    metrics: createMetrics({ service: "test" }),
    log: createLogger({ service: "test", level: "silent" }),
  });
  onTestFinished(() => gate.stop());
  return { gate, world };
};

type World = ReturnType<typeof createGate>["world"];

const startGate = async (secretInUse = hash.ofSecret) => {
  const made = createGate(secretInUse);
  await made.gate.start();
  return made;
};

const readAnew = (gate: SuppressionGate, world: World): Promise<WriteTicket> => {
  world.generation += 1;
  return gate.ticket();
};

const suppresses = async (gate: SuppressionGate, record: ExportRecord): Promise<boolean> =>
  (await gate.suppresses([record]))[0] === true;
const wouldSuppress = async (gate: SuppressionGate, record: ExportRecord): Promise<boolean> =>
  (await gate.wouldSuppress([record]))[0] === true;

const isWaiting = async (promise: Promise<unknown>): Promise<boolean> => {
  const waiting = Symbol();
  return (await Promise.race([promise, Promise.resolve(waiting)])) === waiting;
};

it("reads the suppressions before it opens, and refuses another secret", async () => {
  const { gate, world } = createGate();
  world.rows = [suppressed("conversation", "c")];
  expect(gate.isOpen()).toBe("the suppressions are not read yet");
  expect(() => gate.suspects(conversation("c"))).toThrow(TypeError);
  await gate.start();
  expect(gate.isOpen()).toBe(true);
  expect(await suppresses(gate, conversation("c"))).toBe(true);
  await expect(startGate("of another secret")).rejects.toMatchObject({ code: "suppression_secret" });
});

describe("a ticket", () => {
  it("has a stamp and a generation that were taken before its suppressions were read", async () => {
    const { gate, world } = await startGate();
    world.rows = [suppressed("conversation", "c")];
    Object.assign(world, { asked: [], generation: 7 });
    expect(await gate.ticket()).toEqual({ stamp: START * 1_000, generation: 7 });
    expect(world.asked).toEqual(["ticket", "suppressions"]);
    expect(gate.suspects(conversation("c"))).toBe(true);
  });

  it("costs no reading while the generation is the same, and one for all who wait", async () => {
    const { gate, world } = await startGate();
    await gate.ticket();
    expect(world.loads).toHaveLength(1);
    world.generation = 2;
    const tickets = await Promise.all([gate.ticket(), gate.ticket(), gate.ticket()]);
    expect(tickets.map(({ generation }) => generation)).toEqual([2, 2, 2]);
    expect(world.loads).toHaveLength(2);
  });

  it("does not count a reading that was under way with an earlier generation", async () => {
    const { gate, world } = await startGate();
    const answered = Promise.withResolvers<void>();
    Object.assign(world, { answers: answered.promise, generation: 2 });
    const first = gate.ticket();
    await expect.poll(() => world.loads.length).toBe(2);
    world.rows = [suppressed("conversation", "c")];
    world.generation = 3;
    const second = gate.ticket();
    await expect.poll(() => world.asked.filter((what) => what === "ticket")).toHaveLength(2);
    expect(await isWaiting(second)).toBe(true);
    answered.resolve();
    expect([(await first).generation, (await second).generation]).toEqual([2, 3]);
    expect(world.loads).toHaveLength(3);
    expect(gate.suspects(conversation("c"))).toBe(true);
  });

  it("has the generation that a replica which is behind tells, and reads nothing for it", async () => {
    const { gate, world } = await startGate();
    await readAnew(gate, world);
    world.generation = 1;
    expect((await gate.ticket()).generation).toBe(1);
    expect(world.loads).toHaveLength(2);
  });

  it("reads what may be new, and everything once ClickHouse's clock was set back", async () => {
    const { gate, world } = await startGate();
    world.time += 60_000;
    await readAnew(gate, world);
    world.time -= 900_000;
    await readAnew(gate, world);
    await readAnew(gate, world);
    expect(world.loads).toEqual([null, START - 600_000, null, START - 840_000 - 600_000]);
  });

  it("has a later stamp than all before it, whatever ClickHouse's clock does", async () => {
    const { gate, world } = await startGate();
    const stamps: number[] = [];
    for (const stamp of [100_000, 100_000, 100_050, 99_000, 200_000]) {
      world.stamp = stamp;
      stamps.push((await gate.ticket()).stamp);
    }
    expect(stamps).toEqual([100_000, 100_100, 100_200, 100_300, 200_000]);
  });

  it("is not given when ClickHouse is away; the next one reads again", async () => {
    const { gate, world } = await startGate();
    world.rows = [suppressed("conversation", "c")];
    world.answers = Promise.reject(new Error("away"));
    world.answers.catch(() => undefined);
    await expect(readAnew(gate, world)).rejects.toThrow("away");
    expect(world.lost).toBeNull();
    world.answers = Promise.resolve();
    expect((await gate.ticket()).generation).toBe(2);
    expect(await suppresses(gate, conversation("c"))).toBe(true);
  });

  it("is not given once the stored suppressions are of another secret, and the process must end", async () => {
    const { gate, world } = await startGate();
    world.secretInUse = "of another secret";
    await gate.ticket();
    expect(world.lost).toBeNull();
    await expect(readAnew(gate, world)).rejects.toMatchObject({ code: "suppression_secret" });
    expect(world.lost).toMatchObject({ code: "suppression_secret" });
  });
});

it("says what it would suppress by what was known a second ago or later", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { gate, world } = await startGate();
  world.rows = [suppressed("conversation", "c")];
  world.generation = 2;
  vi.advanceTimersByTime(1_000);
  expect(await wouldSuppress(gate, conversation("c"))).toBe(false);
  vi.advanceTimersByTime(1);
  world.answers = Promise.reject(new Error("away"));
  world.answers.catch(() => undefined);
  for (let again = 0; again < 2; again += 1)
    await expect(wouldSuppress(gate, conversation("c"))).rejects.toThrow("away");
  world.answers = Promise.resolve();
  expect(await wouldSuppress(gate, conversation("c"))).toBe(true);
});

it("has another judgement when it knows more, also by what it has noted", async () => {
  const { gate, world } = await startGate();
  const seen = [gate.judgement()];
  await gate.ticket();
  expect(gate.judgement()).toBe(seen[0]);
  world.rows = [suppressed("conversation", "c")];
  await readAnew(gate, world);
  seen.push(gate.judgement());
  expect(await suppresses(gate, conversation("c"))).toBe(true);
  expect(gate.judgement()).toBe(seen[1]);
  expect(await suppresses(gate, message("m", "c"))).toBe(true);
  seen.push(gate.judgement());
  expect(new Set(seen).size).toBe(3);
});

it("has its former judgement until all that is new is known", async () => {
  const { gate, world } = await startGate();
  const before = gate.judgement();
  const answered = Promise.withResolvers<void>();
  world.answers = answered.promise;
  const ticket = readAnew(gate, world);
  await expect.poll(() => world.loads.length).toBe(2);
  expect(gate.judgement()).toBe(before);
  answered.resolve();
  await ticket;
  expect(gate.judgement()).not.toBe(before);
});

it("notes nothing of what it would suppress, and stores many findings at once", async () => {
  const { gate, world } = await startGate();
  world.rows = [suppressed("conversation", "c")];
  await readAnew(gate, world);
  expect(await wouldSuppress(gate, message("looked-at", "c"))).toBe(true);
  expect(world.found).toEqual([]);
  const children = Array.from({ length: 12_000 }, (_, at) => message(`m${at}`, "c"));
  expect(new Set(await gate.suppresses(children))).toEqual(new Set([true]));
  expect(world.found).toHaveLength(12_000);
});

it("drops by conversation, message and person, when the record was created before", async () => {
  const { gate, world } = await startGate();
  world.rows = [
    suppressed("conversation", "c"),
    suppressed("message", "m"),
    suppressed("subject", hash.of("acme", "chatter_id:p")),
    suppressed("subject", hash.of("acme", "email:p@example.com")),
  ];
  await readAnew(gate, world);
  expect(await suppresses(gate, conversation("c"))).toBe(true);
  expect(await suppresses(gate, conversation("c", "", 20))).toBe(false);
  expect(await suppresses(gate, conversation("d"))).toBe(false);
  expect(await suppresses(gate, conversation("e", "p"))).toBe(true);
  expect(await suppresses(gate, { ...conversation("e", "p"), clientId: "globex" })).toBe(false);
  expect(await suppresses(gate, message("m", "moved"))).toBe(true);
  expect(await suppresses(gate, message("n", "c"))).toBe(true);
  expect(await suppresses(gate, message("o", "d"))).toBe(false);
  expect(await suppresses(gate, endUser("u", " P@Example.com"))).toBe(true);
  expect(await suppresses(gate, conversation("c", "", 19))).toBe(true);
  expect(await suppresses(gate, message("of-e", "e"))).toBe(true);
  expect(await suppresses(gate, endUser("u", "other@example.com"))).toBe(true);
  expect(await suppresses(gate, conversation("e"))).toBe(true);
  expect(world.found.map(({ kind, value }) => `${kind} ${value}`)).toEqual([
    "conversation e",
    "message n",
    "end_user u",
    "message of-e",
  ]);
});
