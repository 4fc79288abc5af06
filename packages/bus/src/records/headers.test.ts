import { expect, it } from "vitest";
import { headersOf } from "./headers.ts";

const bytes = (text: string): Buffer => Buffer.from(text);

it("gives one value as it is and several of one name in their order", () => {
  const list = [
    { key: "a", value: bytes("1") },
    { key: "b", value: null },
    { key: "a", value: bytes("2") },
    { key: "a", value: null },
  ];
  expect(headersOf(list)).toEqual({ a: [bytes("1"), bytes("2"), null], b: null });
});

it("takes any name", () => {
  const names = ["constructor", "toString", "__proto__", ""];
  const headers = headersOf(names.map((key) => ({ key, value: bytes(key) })));
  expect(Object.entries(headers)).toEqual(names.map((key) => [key, bytes(key)]));
});

it("takes as many headers as a message can hold, at once", () => {
  const list = Array.from({ length: 20_000 }, (_, index) => ({ key: `h${index}`, value: null }));
  const startedAt = performance.now();
  expect(Object.keys(headersOf(list))).toHaveLength(20_000);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});
