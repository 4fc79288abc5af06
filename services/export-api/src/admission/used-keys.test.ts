import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { createUsedKeys } from "./used-keys.ts";

it("stores the last use of each key at once, and keeps what could not be stored", async () => {
  const stored: [string, number][][] = [];
  const world = { now: 0, isAway: false };
  const keys = createUsedKeys({
    store: {
      note: async (uses) => {
        if (world.isAway) throw new Error("away");
        stored.push([...uses]);
      },
    },
    now: () => (world.now += 1),
    log: createLogger({ service: "test", level: "silent" }),
  });
  for (const keyId of ["a", "b", "a"]) keys.use(keyId);
  await keys.save();
  await keys.save();
  world.isAway = true;
  for (const keyId of ["b", "c"]) keys.use(keyId);
  const saving = keys.save();
  keys.use("c");
  await saving;
  world.isAway = false;
  await keys.save();
  expect(stored).toEqual([
    [
      ["a", 3],
      ["b", 2],
    ],
    [],
    [
      ["b", 4],
      ["c", 6],
    ],
  ]);
});
