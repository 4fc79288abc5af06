import { expect, test } from "vitest";
import { exportedIn, partsOf, rangesOf } from "./landing-parts.ts";

const FACTS = { run: "backfill job/1", coverage: null, stableUpTo: 7, readAt: 0 };

test.each([
  [1, 100, 1],
  [1_000, 100, 10],
  [1e9, 100, 8_000],
])("parts of %d events hold every hash once", (events, size, count) => {
  const parts = partsOf(FACTS, events, size);
  expect(parts).toHaveLength(count);
  let next = 0n;
  for (const { from, to } of parts) {
    expect(BigInt(from)).toBe(next);
    next = BigInt(to) + 1n;
  }
  expect(next).toBe(2n ** 64n);
});

test("a window by event begins a little earlier on the bus and has no end there", () => {
  const window = { by: "event", from: "2026-10-04T00:00:00Z", to: "2026-10-05T00:00:00Z" } as const;
  expect(rangesOf(window, 300_000)).toEqual([
    { by: "bus", from: (Date.parse(window.from) - 300_000) * 1_000, to: expect.any(Number) },
  ]);
});

test("keeps the microseconds of a window", () => {
  const at = (micros: number): string => `1970-01-01T00:00:00.${String(micros).padStart(6, "0")}Z`;
  const window = { from: at(100), to: at(900) };
  expect(exportedIn({ by: "event", ...window })).toEqual({ from: 100, to: 900 });
  expect(rangesOf({ by: "upload", ...window }, 0)).toEqual([{ by: "upload", from: 100, to: 900 }]);
});
