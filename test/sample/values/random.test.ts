import { describe, expect, test } from "vitest";
import { createRandom, drawCount } from "./random.ts";

describe("createRandom", () => {
  test("the same parts give the same values, other parts give others", () => {
    const values = (...parts: (string | number)[]): number[] => {
      const random = createRandom(...parts);
      return Array.from({ length: 20 }, () => random.next());
    };
    expect(values(1, "a", 2)).toEqual(values(1, "a", 2));
    expect(values(1, "a", 2)).not.toEqual(values(1, "a", 3));
    expect(values(1, "a", 2)).not.toEqual(values(2, "a", 2));
  });

  test("values of neighbouring seeds are spread evenly", () => {
    const tens = Array.from({ length: 10 }, () => 0);
    for (let seed = 0; seed < 20_000; seed += 1) {
      const ten = createRandom(1, "even", seed).int(10);
      tens[ten] = (tens[ten] ?? 0) + 1;
    }
    for (const count of tens) expect(Math.abs(count - 2_000)).toBeLessThan(250);
  });

  test("hex and uuid have their forms", () => {
    const random = createRandom("forms");
    expect(random.hex(13)).toMatch(/^[0-9a-f]{13}$/);
    expect(random.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

test("drawCount keeps whole means exact and others on average", () => {
  const random = createRandom("counts");
  const draws = (mean: number): number[] => Array.from({ length: 20_000 }, () => drawCount(random, mean));
  expect(new Set(draws(4))).toEqual(new Set([4]));
  const drawn = draws(1.6);
  expect(Math.min(...drawn)).toBe(1);
  expect(drawn.reduce((sum, count) => sum + count, 0) / drawn.length).toBeCloseTo(1.6, 1);
});
