import { expect, it } from "vitest";
import { createLookAhead } from "./look-ahead.ts";

it("starts with the initial measure, and looks as far as the page before needed", () => {
  const lookAhead = createLookAhead({ initial: 5 });
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

it("looks at more rows than the page has records, however few were needed", () => {
  const lookAhead = createLookAhead({ initial: 1 });
  lookAhead.learn("a", 10_000, 1);
  expect(lookAhead.candidates("a", 10_000)).toBeGreaterThan(10_000);
  // A page of one record behind many superseded rows says nothing about large ones.
  lookAhead.learn("a", 1, 60);
  expect(lookAhead.candidates("a", 10_000)).toBeLessThan(12_000);
});

it("forgets the client that was seen longest ago", () => {
  const lookAhead = createLookAhead({ initial: 5 });
  const unknown = lookAhead.candidates("0", 100);
  for (let client = 0; client <= 10_000; client += 1) lookAhead.learn(String(client), 100, 100);
  expect(lookAhead.candidates("0", 100)).toBe(unknown);
  expect(lookAhead.candidates("1", 100)).toBeLessThan(unknown);
});
