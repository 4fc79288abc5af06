import { setImmediate as settled } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createSlots } from "./slots.ts";

const never = new AbortController().signal;
const REFUSED = { code: "too_many_pages", retryable: true };
const OWN = { answer: { status: 429, details: expect.stringMatching(/^allowed: \d+ at a time; /) } };

afterEach(() => {
  vi.useRealTimers();
});

const createQueue = (limits: Partial<Parameters<typeof createSlots>[0]> = {}) => {
  const slots = createSlots({ perProcess: 1, perClient: 1, maxWaiting: 100, maxWaitMs: 60_000, ...limits });
  const served: string[] = [];
  const take = (client: string, name = client, signal = never): Promise<() => void> => {
    const taken = slots.take(client, signal).then((release) => {
      served.push(name);
      return release;
    });
    taken.catch(() => undefined);
    return taken;
  };
  const visit = async (client: string, name = client): Promise<void> => (await take(client, name))();
  return { slots, served, take, visit };
};

it("gives freed slots to clients by turns, and within a client in order", async () => {
  const { served, take, visit } = createQueue();
  const release = await take("first");
  const visits = ["a1", "a2", "a3", "b1", "b2", "c1"].map((name) => visit(name.slice(0, 1), name));
  release();
  await Promise.all(visits);
  expect(served).toEqual(["first", "a1", "b1", "c1", "a2", "b2", "a3"]);
});

it("gives the first turn of a client that comes to wait after those who wait already", async () => {
  const { served, take } = createQueue({ perProcess: 2, perClient: 2 });
  const release = await take("a", "a1");
  await take("other");
  const waiting = [take("b"), take("a", "a2")];
  release();
  await waiting[0];
  expect(served).toEqual(["a1", "other", "b"]);
});

it("does not let a client at its cap hold up others", async () => {
  const { slots, served, take } = createQueue({ perProcess: 3, perClient: 2 });
  const releases = [await take("a", "a1"), await take("a", "a2")];
  const third = take("a", "a3");
  expect([slots.inUse, slots.waiting]).toEqual([2, 1]);
  await take("b", "b1");
  const waitingB = take("b", "b2");
  releases[0]?.();
  await third;
  releases[1]?.();
  await waitingB;
  expect(served).toEqual(["a1", "a2", "b1", "a3", "b2"]);
  expect([slots.inUse, slots.waiting]).toEqual([3, 0]);
});

it("frees a slot once, however often it is released", async () => {
  const { slots, take } = createQueue({ perProcess: 2, perClient: 2 });
  const release = await take("a");
  await take("a");
  release();
  release();
  expect(slots.inUse).toBe(1);
});

it("refuses who comes when all places are taken", async () => {
  const { slots, take } = createQueue({ maxWaiting: 2 });
  await take("other");
  void take("a");
  void take("a");
  await expect(take("a")).rejects.toMatchObject(REFUSED);
  expect(slots.waiting).toBe(2);
});

it("says to a client that its own requests are in the way, however they are", async () => {
  vi.useFakeTimers();
  const onOwn = vi.fn();
  const { take } = createQueue({ perProcess: 3, perClient: 2, maxWaiting: 2, maxWaitMs: 1_000, onOwn });
  await take("a");
  await take("a");
  const late = expect(take("a")).rejects.toMatchObject(OWN);
  const displaced = expect(take("a")).rejects.toMatchObject(OWN);
  await expect(take("a")).rejects.toMatchObject(OWN);
  await take("b");
  const others = expect(take("b")).rejects.toMatchObject(REFUSED);
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all([displaced, late, others]);
  expect(onOwn).toHaveBeenCalledTimes(3);
});

it("displaces nobody whose client has no more than its share", async () => {
  const { slots, take } = createQueue({ maxWaiting: 2 });
  const release = await take("first");
  const waiting = [take("a"), take("b")];
  await expect(take("c")).rejects.toMatchObject(REFUSED);
  expect(slots.waiting).toBe(2);
  release();
  await waiting[0];
});

it("gives each client an equal share of the places, taken from the newest of who has most", async () => {
  const { slots, served, take, visit } = createQueue({ maxWaiting: 4 });
  const release = await take("first");
  const of = (client: string, count: number) =>
    Array.from({ length: count }, (_, index) => visit(client, `${client}${index}`));
  const [a, b] = [of("a", 4), of("b", 3)];
  const settledA = Promise.allSettled(a);
  const settledB = Promise.allSettled(b);
  await settled();
  expect(slots.waiting).toBe(4);
  release();
  expect((await settledA).map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "rejected",
  ]);
  expect((await settledB).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  expect(served).toEqual(["first", "a0", "b0", "a1", "b1"]);
});

it("refuses who has waited too long, and keeps the others", async () => {
  vi.useFakeTimers();
  const { slots, take } = createQueue({ maxWaitMs: 1_000 });
  const release = await take("a");
  const late = take("b");
  const refused = expect(late).rejects.toMatchObject(REFUSED);
  await vi.advanceTimersByTimeAsync(500);
  const patient = take("c");
  await vi.advanceTimersByTimeAsync(500);
  await refused;
  expect(slots.waiting).toBe(1);
  release();
  await patient;
  expect(vi.getTimerCount()).toBe(0);
});

describe("a caller that goes away", () => {
  it("leaves the queue", async () => {
    const { slots, served, take } = createQueue();
    const release = await take("a");
    const leaving = new AbortController();
    const left = take("b", "b", leaving.signal);
    const next = take("c");
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    expect(slots.waiting).toBe(1);
    release();
    await next;
    expect(served).toEqual(["a", "c"]);
  });

  it("takes nothing when it was gone before", async () => {
    const { slots, take } = createQueue();
    await expect(take("a", "a", AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect(slots.inUse).toBe(0);
  });

  it("keeps what it was given", async () => {
    const { slots, take } = createQueue();
    const leaving = new AbortController();
    const release = await take("a", "a", leaving.signal);
    leaving.abort();
    expect(slots.inUse).toBe(1);
    release();
    expect(slots.inUse).toBe(0);
  });
});

type Visit = {
  readonly client: string;
  readonly leaving: AbortController;
  readonly waited: boolean;
  state: "waiting" | "held" | "over";
  release: () => void;
};
type Grant = { readonly client: string; readonly alsoWaiting: ReadonlySet<Visit> };

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("take"), pick: fc.nat(4) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("release"), pick: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave"), pick: fc.nat(20) }) },
);
const limits = fc.record({
  perProcess: fc.integer({ min: 1, max: 5 }),
  perClient: fc.integer({ min: 1, max: 4 }),
  maxWaiting: fc.integer({ min: 0, max: 8 }),
});

it("holds the caps, loses no slot and starves nobody, whatever happens", async () => {
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 60 }), async (given, steps) => {
      const slots = createSlots({ ...given, maxWaitMs: 60_000 });
      const visits: Visit[] = [];
      const grants: Grant[] = [];
      const outcomes: Promise<void>[] = [];
      const inState = (state: Visit["state"]) => visits.filter((visit) => visit.state === state);
      const runningOf = (client: string) => inState("held").filter((visit) => visit.client === client).length;

      const noteGrant = (visit: Visit, release: () => void): void => {
        const ahead = inState("waiting").filter(({ client }) => client === visit.client)[0];
        if (visit.waited) expect(ahead).toBe(visit);
        visit.state = "held";
        visit.release = release;
        const alsoWaiting = new Set(inState("waiting"));
        if (visit.waited) checkTurn(visit.client, alsoWaiting);
        if (visit.waited) grants.push({ client: visit.client, alsoWaiting });
      };
      /** Since this client's last turn, every other that waited and may run has had one. */
      const checkTurn = (client: string, waiting: ReadonlySet<Visit>): void => {
        const last = grants.findLastIndex((grant) => grant.client === client);
        for (const other of waiting) {
          if (last < 0 || other.client === client || runningOf(other.client) >= given.perClient) continue;
          if (!grants[last]?.alsoWaiting.has(other)) continue;
          expect(grants.slice(last + 1).map((grant) => grant.client)).toContain(other.client);
        }
      };
      const take = (client: string): void => {
        const leaving = new AbortController();
        const taken = slots.take(client, leaving.signal);
        const waited = slots.inUse === inState("held").length;
        const visit: Visit = { client, leaving, waited, state: "waiting", release: () => undefined };
        visits.push(visit);
        const noteRefusal = (error: { code?: string; answer?: { status: number } }): void => {
          visit.state = "over";
          if (leaving.signal.aborted) return;
          const isOwn = runningOf(client) === given.perClient;
          expect(error.answer?.status ?? error.code).toBe(isOwn ? 429 : "too_many_pages");
          expect(slots.waiting).toBe(given.maxWaiting);
          const counts = Object.values(Object.groupBy(inState("waiting"), (other) => other.client));
          const own = inState("waiting").filter((other) => other.client === client).length;
          // No waiting client has over one place more than the rejected one.
          for (const others of counts) expect((others?.length ?? 0) - own).toBeLessThanOrEqual(1);
        };
        outcomes.push(taken.then((release) => noteGrant(visit, release), noteRefusal));
      };
      const act = (kind: string, pick: number): void => {
        if (kind === "take") return take(`client-${pick}`);
        const among = inState(kind === "release" ? "held" : "waiting");
        const visit = among[pick % Math.max(among.length, 1)];
        if (visit === undefined) return;
        if (kind === "leave") return visit.leaving.abort(new Error("gone"));
        visit.state = "over";
        visit.release();
      };
      const check = (): void => {
        expect(slots.inUse).toBe(inState("held").length);
        expect(slots.waiting).toBe(inState("waiting").length);
        expect(slots.inUse).toBeLessThanOrEqual(given.perProcess);
        expect(slots.waiting).toBeLessThanOrEqual(given.maxWaiting);
        const held = Map.groupBy(inState("held"), ({ client }) => client);
        const running = (client: string): number => held.get(client)?.length ?? 0;
        expect(Math.max(0, ...[...held.keys()].map(running))).toBeLessThanOrEqual(given.perClient);
        if (slots.inUse === given.perProcess) return;
        expect(inState("waiting").filter(({ client }) => running(client) < given.perClient)).toEqual([]);
      };

      for (const { kind, pick } of steps) {
        act(kind, pick);
        await settled();
        check();
      }
      while (inState("held").length > 0) {
        act("release", 0);
        await settled();
        check();
      }
      await Promise.all(outcomes);
      expect([slots.inUse, slots.waiting]).toEqual([0, 0]);
    }),
  );
});
