import { expect, it } from "vitest";
import { createLookAhead } from "./look-ahead.ts";

it("starts with the initial estimate, then uses what the previous page needed", () => {
  const lookAhead = createLookAhead({ initial: 5, spare: 200 });
  const unknown = lookAhead.candidates("a", 1_000);
  expect(unknown).toBeGreaterThan(5_000);
  lookAhead.learn("a", 1_000, 1_000);
  const live = lookAhead.candidates("a", 1_000);
  expect(live).toBeGreaterThan(1_000);
  expect(live).toBeLessThan(1_500);
  lookAhead.learn("a", 100, 2_000);
  expect(lookAhead.candidates("a", 1_000)).toBeGreaterThan(20_000);
  expect(lookAhead.candidates("b", 1_000)).toBe(unknown);
});

it("looks at more rows than a page has records, even if the previous page needed fewer", () => {
  const lookAhead = createLookAhead({ initial: 1, spare: 200 });
  lookAhead.learn("a", 10_000, 1);
  expect(lookAhead.candidates("a", 10_000)).toBeGreaterThan(10_000);
  // A page of one record behind many superseded rows is too small to learn from.
  lookAhead.learn("a", 1, 60);
  expect(lookAhead.candidates("a", 10_000)).toBeLessThan(12_000);
});

it("forgets the client that was updated longest ago", () => {
  const lookAhead = createLookAhead({ initial: 5, spare: 200 });
  const unknown = lookAhead.candidates("0", 100);
  for (let client = 0; client <= 10_000; client += 1) lookAhead.learn(String(client), 100, 100);
  expect(lookAhead.candidates("0", 100)).toBe(unknown);
  expect(lookAhead.candidates("1", 100)).toBeLessThan(unknown);
});

it("learns from positive numbers only", () => {
  const lookAhead = createLookAhead({ initial: 5, spare: 200 });
  const unknown = lookAhead.candidates("a", 1_000);
  for (const [records, needed] of [
    [1_000, Number.NaN],
    [Number.NaN, 1_000],
    [Number.NaN, Number.NaN],
    [1_000, 0],
    [1_000, -1],
    [1_000, Infinity],
    [Infinity, 1_000],
    [Infinity, Infinity],
  ] as const) {
    lookAhead.learn("a", records, needed);
    expect(lookAhead.candidates("a", 1_000), `${needed} for ${records}`).toBe(unknown);
  }
});
