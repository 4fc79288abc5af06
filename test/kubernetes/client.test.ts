import { expect, it } from "vitest";
import { seenIn } from "./client.ts";

const line = (at: number, ok: number, more: object = {}) => ({
  at,
  statuses: { "200": ok, "429": 2 },
  broken: 0,
  wrong: 0,
  age: null,
  said: [],
  ...more,
});

it("what a client saw in a step is what came after the last line before it", () => {
  const lines = [
    line(1_000, 10, { said: ["before"], broken: 1, age: 9_000 }),
    line(2_000, 20, { broken: 1 }),
    line(3_000, 25, { broken: 3, age: 4_000, said: ["ECONNRESET after 2 ms"] }),
    line(4_000, 31, { broken: 3, age: 1_500, wrong: 1, statuses: { "200": 31, "429": 2, "503": 4 } }),
  ];
  expect(seenIn(lines, 2_500)).toEqual({
    statuses: { "200": 11, "503": 4 },
    broken: 2,
    wrong: 1,
    oldest: 4_000,
    said: ["ECONNRESET after 2 ms"],
  });
  expect(seenIn([], 0)).toEqual({ statuses: {}, broken: 0, wrong: 0, oldest: null, said: [] });
});
