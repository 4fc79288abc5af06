import fc from "fast-check";
import { expect, it } from "vitest";
import { createLineCutter } from "./line-cutter.ts";

const MAX_BYTES = 20;

const cut = (bytes: Buffer, cuts: readonly number[] = []): [number, string | null][] => {
  const cutter = createLineCutter(MAX_BYTES);
  const places = [0, ...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const lines = places.slice(1).flatMap((to, index) => cutter.push(bytes.subarray(places[index], to)));
  return [...lines, ...cutter.end()].map(({ number, bytes: line }) => [number, line?.toString() ?? null]);
};

it("gives lines with their numbers, leaves out blank ones, and needs no end of line at the end", () => {
  expect(cut(Buffer.from("\ufeff{a}\r\n\n  \t\r\n{ü} \n\n{c}"))).toEqual([
    [1, "{a}"],
    [4, "{ü}"],
    [6, "{c}"],
  ]);
  expect(cut(Buffer.from("a\n"))).toEqual([[1, "a"]]);
  expect(cut(Buffer.alloc(0))).toEqual([]);
});

it("says which line is too long, and goes on behind it", () => {
  const exact = "x".repeat(MAX_BYTES);
  expect(cut(Buffer.from(`${exact}\n${exact}x\n${exact.repeat(9)}\nb\n${exact}y`))).toEqual([
    [1, exact],
    [2, null],
    [3, null],
    [4, "b"],
    [5, null],
  ]);
});

it("gives the same lines however the bytes come", () => {
  const piece = fc.constantFrom("a", "é", "\n", "\r\n", " ", "x".repeat(15), "y".repeat(30));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 8 }), (pieces, cuts) => {
      const bytes = Buffer.from(pieces.join(""));
      expect(cut(bytes, cuts)).toEqual(cut(bytes));
    }),
  );
});
