import fc from "fast-check";
import { expect, it } from "vitest";
import { type CursorScope, decodePosition, encodePosition, signedText } from "./page-cursor.ts";

const micros = fc.integer({ min: 0, max: 4_291_747_200_000_000 });
const id = fc.string({ unit: "binary" });
const scope: fc.Arbitrary<CursorScope> = fc.record({
  clientId: id,
  endpoint: fc.constantFrom("conversations", "messages"),
  filter: fc.constantFrom("created", "updated"),
  conversationId: fc.option(id),
  since: micros,
  to: micros,
});

it("reads back every position, whatever the id holds", () => {
  fc.assert(
    fc.property(micros, id, fc.option(micros), (date, id, pace) => {
      const position = { date, id, ...(pace !== null && { pace }) };
      expect(decodePosition(encodePosition(position))).toEqual(position);
    }),
  );
});

it("reads the former form, which has no pace, and writes it where there is none", () => {
  expect(encodePosition({ date: 5, id: "7:a" })).toBe("1:5:7:a");
  expect(decodePosition("1:5:7:a")).toEqual({ date: 5, id: "7:a" });
  expect(encodePosition({ date: 5, id: "7:a", pace: 9 })).toBe("2:5:9:7:a");
});

it("refuses content that it did not write", () => {
  for (const text of [
    "",
    "1",
    "1:5",
    "1::a",
    "1:-5:a",
    "1:05:a",
    "1:1e3:a",
    "1:5.5:a",
    "2:5:a",
    "2:5:a:b",
    "2:5::a",
    "2::5:a",
    "2:05:5:a",
    "2:5:-1:a",
    "2:5:01:a",
    "2:5:1.5:a",
    "3:5:5:a",
    " 1:5:a",
  ]) {
    expect(decodePosition(text), text).toBeUndefined();
  }
});

it("signs different texts for different content or scope", () => {
  fc.assert(
    fc.property(id, scope, id, scope, (contentA, scopeA, contentB, scopeB) => {
      const same = contentA === contentB && JSON.stringify(scopeA) === JSON.stringify(scopeB);
      expect(signedText(contentA, scopeA) === signedText(contentB, scopeB)).toBe(same);
    }),
  );
});

it("signs every part of the scope", () => {
  const base: CursorScope = {
    clientId: "c",
    endpoint: "messages",
    filter: "created",
    conversationId: null,
    since: 1,
    to: 2,
  };
  const others: CursorScope[] = [
    base,
    { ...base, clientId: "d" },
    { ...base, endpoint: "conversations" },
    { ...base, filter: "updated" },
    { ...base, conversationId: "x" },
    { ...base, since: 0 },
    { ...base, to: 3 },
  ];
  expect(new Set(others.map((scope) => signedText("1:5:a", scope))).size).toBe(others.length);
});
