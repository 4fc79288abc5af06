import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createKey, parseKey } from "./index.ts";

it("makes keys of the published shape, all different, whose hash is the SHA-256 of the whole text", () => {
  const keys = Array.from({ length: 500 }, () => createKey());
  expect(new Set(keys.map(({ key }) => key)).size).toBe(500);
  for (const { key, hash } of keys) {
    expect(key).toMatch(/^cx_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
    expect(hash).toBe(createHash("sha256").update(key).digest("hex"));
    expect(parseKey(key)).toEqual({ hash });
  }
});

it("uses every bit: the first digit varies", () => {
  const first = new Set(Array.from({ length: 200 }, () => createKey().key.charAt(3)));
  expect(first.size).toBeGreaterThan(10);
});

it("refuses a key with any one character changed", () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 52 }),
      fc.constantFrom("0", "9", "A", "Z", "a", "z", "_", "-"),
      (position, character) => {
        const { key } = createKey();
        if (key.charAt(position) === character) return;
        expect(parseKey(key.slice(0, position) + character + key.slice(position + 1))).toBeUndefined();
      },
    ),
  );
});

it("refuses any other text", () => {
  const { key } = createKey();
  for (const text of [
    "",
    "cx_",
    ` ${key}`,
    `${key} `,
    `${key}\n`,
    key.toLowerCase(),
    key.slice(0, -1),
    `${key}0`,
  ]) {
    expect(parseKey(text)).toBeUndefined();
  }
});
