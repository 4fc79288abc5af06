import fc from "fast-check";
import { expect, test } from "vitest";
import { createSchedule } from "./schedule.ts";

test("a schedule gives items by instant, then by arrival, and none that are still to come", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 })),
      fc.integer({ min: 0, max: 20 }),
      (instants, until) => {
        const schedule = createSchedule<number>();
        for (const [order, at] of instants.entries()) schedule.add(at, order);
        const taken: number[] = [];
        for (let item = schedule.take(until); item !== undefined; item = schedule.take(until))
          taken.push(item);
        const wanted = [...instants.entries()]
          .filter(([, at]) => at <= until)
          .sort((a, b) => a[1] - b[1] || a[0] - b[0])
          .map(([order]) => order);
        expect(taken).toEqual(wanted);
      },
    ),
  );
});
