import { expect, it } from "vitest";
import { deriveKey } from "./derive-key.ts";

it("gives each purpose and each secret a key of its own, the same in every process", () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const keys = [
    deriveKey(secret, "cursors"),
    deriveKey(secret, "request ids"),
    deriveKey(`${secret}0`, "cursors"),
  ].map((key) => key.toString("hex"));
  expect(new Set(keys).size).toBe(3);
  expect(keys[0]).toBe("11aef09ba53979b4dce82e6210fbca7dd909dcfd114e4566aef174c9d5e7179f");
});
