import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createCursorSigner } from "./cursor-signer.ts";

const SECRET = "a secret of the tests, 32 characters long";
const signer = createCursorSigner({ secret: SECRET });
const text = fc.string({ unit: "binary", minLength: 1 });
const coveredBy = (scope: string) => (content: string) => JSON.stringify([content, scope]);
const sign = (content: string, scope: string, by = signer): string =>
  by.sign(content, coveredBy(scope)(content));

it("opens what it has signed, for what it was signed for", () => {
  fc.assert(
    fc.property(text, text, text, (content, scope, other) => {
      const cursor = sign(content, scope);
      expect(cursor).toMatch(/^[\w-]+$/);
      expect(signer.open(cursor, coveredBy(scope))).toBe(content);
      expect(signer.open(cursor, coveredBy(other))).toBe(other === scope ? content : undefined);
    }),
  );
});

it("refuses every other text", () => {
  const cursor = sign("c1:1:2:a", "acme");
  const swapped = Buffer.from(cursor, "base64url");
  swapped[swapped.length - 1] = "b".charCodeAt(0);
  for (const wrong of [
    "",
    "a",
    cursor.slice(0, -1),
    `${cursor}=`,
    ` ${cursor}`,
    swapped.toString("base64url"),
  ])
    expect(signer.open(wrong, coveredBy("acme")), wrong).toBeUndefined();
  expect(signer.open(cursor.slice(0, 43), coveredBy("acme"))).toBeUndefined();
});

it("never meets a cursor that it cannot open while the secret is changed in steps", () => {
  const former = SECRET;
  const later = "another secret, 32 characters or more";
  const steps = [
    { secret: former },
    { secret: former, previousSecret: later },
    { secret: later, previousSecret: former },
    { secret: later },
  ].map(createCursorSigner);
  // During a roll-out, processes of neighbouring steps answer.
  for (const [index, one] of steps.entries()) {
    for (const other of steps.slice(Math.max(index - 1, 0), index + 2)) {
      expect(other.open(sign("a", "acme", one), coveredBy("acme"))).toBe("a");
    }
  }
});

it("signs with a key of its own, not with the secret itself", () => {
  const given = Buffer.from(sign("a", "acme"), "base64url").subarray(0, 32);
  const raw = createHmac("sha256", SECRET).update(coveredBy("acme")("a")).digest();
  expect(given.equals(raw)).toBe(false);
});

it("opens cursors of the former secret, and signs none with it", () => {
  const changed = createCursorSigner({
    secret: "another secret, 32 characters or more",
    previousSecret: SECRET,
  });
  expect(changed.open(sign("a", "acme"), coveredBy("acme"))).toBe("a");
  expect(signer.open(sign("a", "acme", changed), coveredBy("acme"))).toBeUndefined();
  const forgotten = createCursorSigner({ secret: "another secret, 32 characters or more" });
  expect(forgotten.open(sign("a", "acme"), coveredBy("acme"))).toBeUndefined();
});
