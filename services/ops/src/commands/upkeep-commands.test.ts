import { expect, it } from "vitest";
import { nothingCompared } from "./upkeep-commands.ts";

it("says why no hour was compared, and when the next one ends", () => {
  const to = "2026-11-21T19:00:00.000Z";
  expect(nothingCompared({ from: to, to })).toMatch(
    /^no hour was compared: all hours up to 2026-11-21T19:00Z were compared before, .*ends at 2026-11-21T20:00Z/,
  );
  expect(nothingCompared({ from: "2026-11-21T18:00:00.000Z", to })).toBeNull();
});
