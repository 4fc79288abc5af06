import fc from "fast-check";
import { expect, it } from "vitest";
import {
  decodeChangePosition,
  encodeChangePosition,
  isExpiredPosition,
  signedChange,
} from "./change-cursor.ts";

const micros = fc.integer({ min: 0, max: 4_291_747_200_000_000 });
const text = fc.string({ unit: "binary" });
const DAY = 86_400_000_000;

it("reads back every position, whatever the id holds", () => {
  fc.assert(
    fc.property(micros, micros, text, (date, begun, id) => {
      expect(decodeChangePosition(encodeChangePosition({ date, begun, id }))).toEqual({ date, begun, id });
    }),
  );
});

it("refuses content that it did not write", () => {
  for (const content of ["", "c1", "c1:1:2", "1:5:a", "c1:05:1:a", "c1:-1:1:a", "c2:1:1:a", " c1:1:1:a"])
    expect(decodeChangePosition(content), content).toBeUndefined();
});

it("signs different texts for different content or scope", () => {
  fc.assert(
    fc.property(text, text, text, text, text, text, (a, b, c, d, e, f) => {
      const same = a === d && b === e && c === f;
      const one = signedChange(a, { clientId: b, list: c });
      expect(one === signedChange(d, { clientId: e, list: f })).toBe(same);
    }),
  );
});

it("expires when the reader began before the deletions that are kept, and has not passed that day", () => {
  const now = 100 * DAY;
  const at = (date: number, begun: number) =>
    isExpiredPosition({ date: date * DAY, begun: begun * DAY, id: "" }, now);
  expect(at(69, 69)).toBe(true);
  expect(at(70, 1)).toBe(false);
  expect(at(1, 70)).toBe(false);
});
