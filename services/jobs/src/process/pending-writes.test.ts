import { expect, it } from "vitest";
import { createPendingWrites } from "./pending-writes.ts";

it("ends with what was noted of the suppressed, and fails when that cannot be stored", async () => {
  const stored = Promise.withResolvers<void>();
  const order: string[] = [];
  const pending = createPendingWrites({
    foundStored: async () => {
      order.push("store");
      await stored.promise;
    },
  });
  const written = pending.run(7, async () => void order.push("write"));
  const settled = pending.settled();
  expect(pending.oldestUpload()).toBe(7);
  stored.reject(new Error("away"));
  await expect(written).rejects.toThrow("away");
  await settled;
  expect(order).toEqual(["write", "store"]);
  expect(pending.oldestUpload()).toBeNull();
});
