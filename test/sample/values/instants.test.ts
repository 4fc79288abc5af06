import fc from "fast-check";
import { expect, test } from "vitest";
import { readInstant } from "../../reference/instant.ts";
import { coarsen, writeInstant } from "./instants.ts";
import { createRandom } from "./random.ts";

test("every written form means the instant", () => {
  const instants = fc.integer({ min: 86_400_000_000, max: 4_000_000_000_000_000 });
  fc.assert(
    fc.property(instants, fc.nat(), (any, seed) => {
      const random = createRandom(seed);
      const instant = coarsen(random, any);
      expect(readInstant(writeInstant(random, instant))).toBe(BigInt(instant));
    }),
  );
});
