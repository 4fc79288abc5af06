import { expect, it } from "vitest";
import { createProgressWriter, sumProgress } from "./job-progress.ts";
import type { JobProgress } from "../contract/job.ts";

const rows = (done: number, total: number | null = null): JobProgress => ({ done, total, unit: "rows" });

it("writes twice a second at most, and the last of all by flush", async () => {
  const written: number[] = [];
  let time = 0;
  const writer = createProgressWriter(
    ({ done }) => Promise.resolve(written.push(done)),
    () => time,
  );
  for (time = 0; time <= 1_000; time += 100) await writer.report(rows(time));
  expect(written).toEqual([0, 500, 1_000]);
  await writer.report(rows(1_001));
  await writer.flush();
  await writer.flush();
  expect(written).toEqual([0, 500, 1_000, 1_001]);
});

it("does not mind that it cannot be written", async () => {
  const writer = createProgressWriter(() => Promise.reject(new Error("Redis is away")));
  await expect(writer.report(rows(1))).resolves.toBeUndefined();
});

it("sums parts, and knows the total when every part has told its own", () => {
  expect(sumProgress([], 3)).toBeNull();
  expect(sumProgress([rows(1, 5), rows(2, 5)], 3)).toEqual(rows(3));
  expect(sumProgress([rows(1, 5), rows(2, 5)], 2)).toEqual(rows(3, 10));
  expect(sumProgress([rows(1, 5), rows(2)], 2)).toEqual(rows(3));
});
