import { expect, it } from "vitest";
import { nothingReplayed } from "./dead-letter-commands.ts";

const NONE = {
  notMatching: 3,
  replayedBefore: 0,
  tooManyReplays: 0,
  withoutPayload: 1,
  tooLarge: 0,
  unreadable: 0,
};
const asked = { again: false, maxReplays: 3, dryRun: false };

it("says which option takes dead letters that were left out", () => {
  const before = { replayed: 0, skipped: { ...NONE, replayedBefore: 1 } };
  expect(nothingReplayed(before, asked)).toBe(
    "nothing is replayed; 1 replayed before: --again replays them again",
  );
  expect(nothingReplayed(before, { ...asked, dryRun: true })).toMatch(/^nothing would be replayed; /);
  const often = { replayed: 0, skipped: { ...NONE, tooManyReplays: 2 } };
  expect(nothingReplayed(often, asked)).toMatch(/2 replayed 3 times.*--max-replays/);
});

it("says nothing when dead letters were replayed, when there are none, or when --again was given", () => {
  expect(nothingReplayed({ replayed: 1, skipped: { ...NONE, replayedBefore: 1 } }, asked)).toBeNull();
  expect(nothingReplayed({ replayed: 0, skipped: NONE }, asked)).toBeNull();
  const again = { ...asked, again: true };
  expect(nothingReplayed({ replayed: 0, skipped: { ...NONE, replayedBefore: 1 } }, again)).toBeNull();
});
