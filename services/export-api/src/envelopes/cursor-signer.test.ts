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

it("never meets a cursor that it cannot open while the secret is changed in steps", () => {
  const later = "another secret, 32 characters or more";
  const steps = [
    { secret: SECRET },
    { secret: SECRET, previousSecret: later },
    { secret: later, previousSecret: SECRET },
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
