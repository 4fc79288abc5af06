import { expect, it } from "vitest";
import { createLandingGap } from "./landing-gap.ts";

const SECOND = 1_000;
const signal = new AbortController().signal;

const startGap = () => {
  const clock = { now: 1_000_000 * SECOND };
  const marks: number[] = [];
  const store = {
    markGap: (until: number): Promise<void> => {
      marks.push(until / 1000 - clock.now);
      return Promise.resolve();
    },
  };
  return { clock, marks, gap: createLandingGap({ store, now: () => clock.now }) };
};

it("marks two minutes ahead, and again when less than one is left", async () => {
  const { clock, marks, gap } = startGap();
  await gap.cover(signal);
  expect(marks).toEqual([120 * SECOND]);
  clock.now += 60 * SECOND;
  await gap.cover(signal);
  expect(marks).toHaveLength(1);
  clock.now += 1;
  await gap.cover(signal);
  expect(marks).toEqual([120 * SECOND, 120 * SECOND]);
});

it("marks again when marking took longer than what it marked", async () => {
  const clock = { now: 0 };
  const marks: number[] = [];
  const store = {
    markGap: (until: number): Promise<void> => {
      marks.push(until / 1000);
      if (marks.length === 1) clock.now += 90 * SECOND;
      return Promise.resolve();
    },
  };
  await createLandingGap({ store, now: () => clock.now }).cover(signal);
  expect(marks).toEqual([120 * SECOND, 210 * SECOND]);
});

it("covers nothing when the mark could not be left", async () => {
  const failing = { markGap: () => Promise.reject(new Error("away")) };
  const gap = createLandingGap({ store: failing, now: Date.now });
  await expect(gap.cover(signal)).rejects.toThrow("away");
  await expect(gap.cover(signal)).rejects.toThrow("away");
});
