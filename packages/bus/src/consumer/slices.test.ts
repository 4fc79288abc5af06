import { expect, it } from "vitest";
import { createSliceSizer } from "./slices.ts";

const settle = (sliceMs: number, msEach: number): number => {
  const sizer = createSliceSizer(sliceMs);
  for (let round = 0; round < 20; round++) sizer.took(sizer.size(), sizer.size() * msEach);
  return sizer.size();
};

it("finds the number of messages that fit into the time", () => {
  expect(settle(20, 0.1)).toBe(200);
  expect(settle(20, 1)).toBe(20);
});

it("never stops and never takes everything", () => {
  expect(settle(20, 1000)).toBe(1);
  expect(settle(20, 0)).toBe(4096);
});

it("changes by a step at a time, so that one pause does not count for much", () => {
  const sizer = createSliceSizer(20);
  const before = sizer.size();
  sizer.took(before, 60_000);
  expect(sizer.size()).toBe(before / 4);
});

it("keeps its size after a slice without messages", () => {
  const sizer = createSliceSizer(20);
  const before = sizer.size();
  sizer.took(0, 0.001);
  expect(sizer.size()).toBe(before);
});
