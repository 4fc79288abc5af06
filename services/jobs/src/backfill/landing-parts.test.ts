import fc from "fast-check";
import { expect, test } from "vitest";
import { cutIntoParts, rangesOf } from "./landing-parts.ts";

const WIDTH = 10;

test("parts hold every stretch once, within the range, and are about as large as asked", () => {
  const stretches = fc
    .uniqueArray(fc.record({ at: fc.nat(50), events: fc.integer({ min: 1, max: 1_000 }) }), {
      selector: ({ at }) => at,
    })
    .map((list) => list.sort((a, b) => a.at - b.at));
  fc.assert(
    fc.property(stretches, fc.integer({ min: 50, max: 500 }), (list, size) => {
      const range = { by: "upload", from: 3, to: 10_000 } as const;
      const counts = list.map(({ at, events }) => ({ from: at * WIDTH, to: (at + 1) * WIDTH, events }));
      const parts = cutIntoParts(range, counts, size);
      for (const { from, to } of counts) {
        const middle = (from + to) / 2;
        const holding = parts.filter((part) => part.range.from <= middle && middle < part.range.to);
        const [first] = holding;
        expect(holding.map(({ share }) => share.index)).toEqual(
          Array.from({ length: first?.share.of ?? 0 }, (_, index) => index),
        );
        expect(holding.length).toBeGreaterThan(0);
      }
      for (const { range: own, events } of parts) {
        expect(own.from).toBeGreaterThanOrEqual(range.from);
        expect(own.to).toBeLessThanOrEqual(range.to);
        expect(events).toBeLessThanOrEqual(2 * size);
      }
      const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
      expect(sum(parts.map(({ events }) => events))).toBeGreaterThanOrEqual(
        sum(list.map(({ events }) => events)),
      );
    }),
  );
});

test("a window by event begins a little earlier on the bus and has no end there", () => {
  const window = { by: "event", from: "2026-10-04T00:00:00Z", to: "2026-10-05T00:00:00Z" } as const;
  expect(rangesOf(window, 300_000)).toEqual([
    { by: "bus", from: (Date.parse(window.from) - 300_000) * 1_000, to: expect.any(Number) },
  ]);
});
