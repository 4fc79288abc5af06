import type { RateWindow } from "@conversation-export/domain";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createMemoryLimiter } from "./memory-limiter.ts";

const START = 1_700_000_000_500;
const window = (requests: number, seconds: number): RateWindow => ({ requests, seconds });

const createTimed = (maxKeys = 100) => {
  const clock = { now: START };
  return { clock, limiter: createMemoryLimiter({ maxKeys, now: () => clock.now }) };
};

it("describes a window that begins with its first request", () => {
  const { clock, limiter } = createTimed();
  const one = window(2, 60);
  const seen = { allowed: true, limit: 2, window: one, shared: false, resetAt: 1_700_000_061 };
  expect(limiter.consume("k", [one])).toEqual({ ...seen, remaining: 1, retryAfter: 60 });
  clock.now += 10_000;
  expect(limiter.consume("k", [one])).toEqual({ ...seen, remaining: 0, retryAfter: 50 });
  expect(limiter.consume("k", [one])).toEqual({ ...seen, allowed: false, remaining: 0, retryAfter: 50 });
  clock.now += 49_999;
  expect(limiter.consume("k", [one])).toEqual({ ...seen, allowed: false, remaining: 0, retryAfter: 1 });
  clock.now += 1;
  expect(limiter.consume("k", [one])).toMatchObject({ allowed: true, remaining: 1, retryAfter: 60 });
});

it("reports the fewest requests left, and the refusing window that lasts longest", () => {
  const { limiter } = createTimed();
  const [short, middle, long] = [window(5, 1), window(3, 60), window(3, 3_600)];
  const answers = [1, 2, 3, 4].map(() => limiter.consume("k", [short, middle, long]));
  expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
    [true, 2],
    [true, 1],
    [true, 0],
    [false, 0],
  ]);
  expect(answers[3]).toMatchObject({ window: long, retryAfter: 3_600 });
});

it("looks without counting", () => {
  const { limiter } = createTimed();
  const one = window(1, 60);
  expect(limiter.peek("k", [one])).toMatchObject({ allowed: true, remaining: 1 });
  expect(limiter.peek("k", [one])).toMatchObject({ allowed: true, remaining: 1 });
  limiter.consume("k", [one]);
  expect(limiter.peek("k", [one])).toMatchObject({ allowed: false, remaining: 0 });
});

it("forgets the key unused for longest", () => {
  const { limiter } = createTimed(2);
  const one = [window(1, 60)];
  for (const key of ["a", "b", "a", "c"]) limiter.consume(key, one);
  expect(limiter.peek("a", one).allowed).toBe(false);
  expect(limiter.peek("b", one).allowed).toBe(true);
  expect(limiter.peek("c", one).allowed).toBe(false);
});

it("begins no window with a request that another window refuses", () => {
  const { clock, limiter } = createTimed();
  const [long, short] = [window(2, 13), window(1, 10)];
  expect(limiter.consume("k", [long, short]).allowed).toBe(true);
  clock.now += 10_000;
  expect(limiter.consume("k", [long, short]).allowed).toBe(true);
  clock.now += 1_000;
  expect(limiter.consume("k", [long]).allowed).toBe(false);
  expect(limiter.consume("k", [long, window(1, 3)]).allowed).toBe(false);
  clock.now += 2_000;
  expect(limiter.consume("k", [long, window(1, 3)])).toMatchObject({ allowed: true });
  clock.now += 1_000;
  expect(limiter.consume("k", [long, window(1, 3)])).toMatchObject({ allowed: false, retryAfter: 2 });
});

it("does not make a window longer when the clock is set back", () => {
  const { clock, limiter } = createTimed();
  limiter.consume("k", [window(1, 60)]);
  clock.now -= 3_600_000;
  expect(limiter.consume("k", [window(1, 60)])).toMatchObject({ allowed: false, retryAfter: 60 });
});

it("never lets more through a window than it holds, and nothing less", () => {
  const windows = fc.uniqueArray(
    fc.record({ requests: fc.integer({ min: 1, max: 6 }), seconds: fc.integer({ min: 1, max: 20 }) }),
    { selector: ({ seconds }) => seconds, minLength: 1, maxLength: 3 },
  );
  const pauses = fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 80 });
  fc.assert(
    fc.property(windows, pauses, (given, waits) => {
      const { clock, limiter } = createTimed();
      // The model: end and admitted requests of each window.
      const model = given.map(() => ({ end: 0, admitted: 0 }));
      for (const wait of waits) {
        clock.now += wait;
        const { allowed, retryAfter } = limiter.consume("k", given);
        for (const [index, state] of model.entries()) {
          if (state.end <= clock.now) model[index] = { end: 0, admitted: 0 };
        }
        const free = given.every(({ requests }, index) => (model[index]?.admitted ?? 0) < requests);
        expect(allowed).toBe(free);
        expect(retryAfter).toBeGreaterThanOrEqual(1);
        if (!allowed) continue;
        for (const [index, { seconds }] of given.entries()) {
          const { end = 0, admitted = 0 } = model[index] ?? {};
          model[index] = { end: end || clock.now + seconds * 1000, admitted: admitted + 1 };
        }
      }
    }),
  );
});

it("takes back what was counted, and never more", () => {
  const limiter = createMemoryLimiter({ maxKeys: 10, now: () => 0 });
  const windows = [{ requests: 2, seconds: 60 }];
  limiter.refund("a", windows);
  limiter.consume("a", windows);
  limiter.consume("a", windows);
  expect(limiter.peek("a", windows).allowed).toBe(false);
  limiter.refund("a", windows);
  expect(limiter.consume("a", windows).allowed).toBe(true);
  expect(limiter.consume("a", windows).allowed).toBe(false);
});
