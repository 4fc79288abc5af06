import { expect, test } from "vitest";
import { cutRanges } from "./cut-range.ts";

test.each([
  [1_000_000, 20],
  [1_000_000_000, 5_012],
])("%d offsets of twelve partitions are cut into no more parts than a job may have", (total, most) => {
  const ranges = Array.from({ length: 12 }, (_, partition) => ({ partition, from: 0, to: total / 12 }));
  const parts = cutRanges(ranges, 50_000);
  expect(parts.length).toBeLessThanOrEqual(Math.max(most, 24));
  expect(parts.reduce((sum, { from, to }) => sum + to - from, 0)).toBeCloseTo(total, 0);
});
