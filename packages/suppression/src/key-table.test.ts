import fc from "fast-check";
import { expect, it } from "vitest";
import { createKeyTable } from "./key-table.ts";

const word = fc.integer({ min: 0, max: 2 ** 32 - 1 });
/** Words that collide, at both ends. */
const crowded = fc.constantFrom(0, 1, 2, 2 ** 31, 2 ** 32 - 2, 2 ** 32 - 1);

it("answers as a Map of the same keys does, however close they lie", () => {
  const entry = fc.record({ high: fc.oneof(crowded, word), low: fc.oneof(crowded, word), value: crowded });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 300 }), fc.array(entry), (entries, others) => {
      const table = createKeyTable(1_000);
      const model = new Map<string, number>();
      for (const { high, low, value } of entries) {
        expect(table.put(high, low, value)).toBe(true);
        const name = `${high} ${low}`;
        if (value > (model.get(name) ?? 0)) model.set(name, value);
      }
      for (const { high, low } of [...entries, ...others])
        expect(table.get(high, low)).toBe(model.get(`${high} ${low}`) ?? 0);
      expect(table.size()).toBe(model.size);
    }),
  );
});

/** Equal steps would stay equal when spread. */
const wordAt = (at: number): number => {
  const mixed = Math.imul(at ^ (at >>> 16), 0x85ebca6b);
  const again = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (again ^ (again >>> 16)) >>> 0;
};

it("grows up to its limit, keeps everything, and gives its memory back", () => {
  const max = 100_000;
  const table = createKeyTable(max);
  for (let at = 0; at < max; at += 1) expect(table.put(wordAt(at), at, at + 1)).toBe(true);
  expect(table.put(wordAt(max), max, 1)).toBe(false);
  expect(table.put(wordAt(7), 7, 2_000_000)).toBe(true);
  expect(table.get(wordAt(7), 7)).toBe(2_000_000);
  expect(table.get(wordAt(max), max)).toBe(0);
  const wrong = Array.from({ length: max }, (_, at) => at).filter(
    (at) => at !== 7 && table.get(wordAt(at), at) !== at + 1,
  );
  expect(wrong).toEqual([]);
  expect(table.bytes()).toBeLessThan(max * 16);
  table.clear();
  expect([table.size(), table.bytes(), table.get(wordAt(1), 1)]).toEqual([0, 0, 0]);
  expect(table.put(5, 5, 5)).toBe(true);
  expect(table.get(5, 5)).toBe(5);
});

it("has no room when it may hold nothing", () => {
  const table = createKeyTable(0);
  expect(table.put(1, 1, 1)).toBe(false);
  expect(table.get(1, 1)).toBe(0);
});
