import { expect, it } from "vitest";
import { askNearFirst } from "./near-part.ts";

const DAY = 86_400_000_000;
const START = 1_000 * DAY;

const askedAbout = async (days: number, rowsADay: number, wanted: number): Promise<number[]> => {
  const asked: number[] = [];
  const rows = await askNearFirst(
    START,
    START + days * DAY,
    (to) => {
      asked.push((to - START) / DAY);
      return Promise.resolve(((to - START) / DAY) * rowsADay);
    },
    (found) => found >= wanted,
  );
  expect(rows).toBe((asked.at(-1) ?? 0) * rowsADay);
  return asked;
};

it("asks about the near part of a long window, and about wider ones only when it has too few rows", async () => {
  expect(await askedAbout(2_000, 10, 100)).toEqual([40]);
  expect(await askedAbout(2_000, 1, 100)).toEqual([40, 320]);
  expect(await askedAbout(2_000, 1, 1_000)).toEqual([40, 320, 2_000]);
});

it("asks once about a window that is not longer", async () => {
  expect(await askedAbout(40, 1, 100)).toEqual([40]);
  expect(await askedAbout(7, 100, 100)).toEqual([7]);
});
