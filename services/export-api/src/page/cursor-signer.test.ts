import fc from "fast-check";
import { expect, it } from "vitest";
import { createCursorSigner } from "./cursor-signer.ts";

const SECRET = "a secret of the tests, 32 letters long";
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
  // A signature alone, without content.
  expect(signer.open(cursor.slice(0, 43), coveredBy("acme"))).toBeUndefined();
});

it("opens cursors of the former secret, and signs none with it", () => {
  const changed = createCursorSigner({
    secret: "another secret, 32 letters or more",
    previousSecret: SECRET,
  });
  expect(changed.open(sign("a", "acme"), coveredBy("acme"))).toBe("a");
  expect(signer.open(sign("a", "acme", changed), coveredBy("acme"))).toBeUndefined();
  const forgotten = createCursorSigner({ secret: "another secret, 32 letters or more" });
  expect(forgotten.open(sign("a", "acme"), coveredBy("acme"))).toBeUndefined();
});
