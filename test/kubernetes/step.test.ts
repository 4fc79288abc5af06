import { expect, it } from "vitest";
import type { Seen } from "./client.ts";
import { complaintsOf } from "./step.ts";

const seen = (given: Partial<Seen>): Seen => ({
  statuses: { "200": 5 },
  broken: 0,
  wrong: 0,
  oldest: null,
  said: [],
  ...given,
});

it("a step takes 200 and 429, and what it allows in addition", () => {
  expect(complaintsOf(seen({ statuses: { "200": 5, "429": 2 } }), {})).toEqual([]);
  const faulty = seen({ statuses: { "200": 5, "503": 3 }, broken: 2 });
  expect(complaintsOf(faulty, {})).toEqual(["2 broken connections", "3 times 503"]);
  expect(complaintsOf(faulty, { broken: true, away: true })).toEqual([]);
  expect(complaintsOf(seen({ wrong: 1 }), { broken: true, away: true })).toEqual(["1 wrong answers"]);
  expect(complaintsOf(seen({ statuses: { "429": 1 } }), {})).toEqual(["no answer with 200"]);
});
