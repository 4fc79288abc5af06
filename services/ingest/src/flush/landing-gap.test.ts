import { expect, it } from "vitest";
import { createLandingGap } from "./landing-gap.ts";

const SECOND = 1_000_000;
const { signal } = new AbortController();

const startGap = () => {
  const marks: number[] = [];
  const store = {
    markGap: (until: number): Promise<void> => {
      marks.push(until);
      return Promise.resolve();
    },
  };
  return { marks, gap: createLandingGap({ store }) };
};

it("marks two minutes ahead of a stamp, and again for one that lies at or behind the mark", async () => {
  const { marks, gap } = startGap();
  await gap.cover(1_000 * SECOND, signal);
  await gap.cover(1_120 * SECOND - 1, signal);
  expect(marks).toEqual([1_120 * SECOND]);
  await gap.cover(1_120 * SECOND, signal);
  expect(marks).toEqual([1_120 * SECOND, 1_240 * SECOND]);
});

it("covers what a larger mark of another batch covers", async () => {
  const { marks, gap } = startGap();
  await Promise.all([gap.cover(1_500 * SECOND, signal), gap.cover(1_000 * SECOND, signal)]);
  await gap.cover(1_600 * SECOND, signal);
  expect(marks).toEqual([1_620 * SECOND, 1_120 * SECOND]);
});

it("covers nothing when the mark could not be left", async () => {
  const failing = { markGap: () => Promise.reject(new Error("away")) };
  const gap = createLandingGap({ store: failing });
  await expect(gap.cover(1, signal)).rejects.toThrow("away");
  await expect(gap.cover(1, signal)).rejects.toThrow("away");
});
