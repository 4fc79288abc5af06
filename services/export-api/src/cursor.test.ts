import type { CursorScope } from "@conversation-export/domain";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createCursorSigner } from "./cursor.ts";

const scope: CursorScope = {
  clientId: "acme",
  endpoint: "messages",
  filter: "created",
  conversationId: null,
  since: 1_000,
  to: 2_000,
};
const cursors = createCursorSigner({ secret: "x".repeat(32) });
const position = fc.record({ date: fc.nat(), id: fc.string({ minLength: 1, unit: "binary" }) });

it("opens what it signed, in the same scope alone", () => {
  fc.assert(
    fc.property(position, (position) => {
      const cursor = cursors.sign(scope, position);
      expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(cursors.open(scope, cursor)).toEqual(position);
      for (const other of [
        { ...scope, clientId: "other" },
        { ...scope, endpoint: "conversations" },
        { ...scope, filter: "updated" as const },
        { ...scope, conversationId: "c" },
        { ...scope, since: 999 },
        { ...scope, to: 2_001 },
      ]) {
        expect(cursors.open(other, cursor)).toBeUndefined();
      }
    }),
  );
});

it("refuses a cursor with any character changed, added or removed", () => {
  fc.assert(
    fc.property(
      position,
      fc.nat(),
      fc.constantFrom("A", "a", "0", "_", "-", "=", ".", " ", "!"),
      (position, place, character) => {
        const cursor = cursors.sign(scope, position);
        const at = place % (cursor.length + 1);
        const changed = [
          cursor.slice(0, at) + character + cursor.slice(at + 1),
          cursor.slice(0, at) + character + cursor.slice(at),
          cursor.slice(0, at) + cursor.slice(at + 1),
        ].filter((text) => text !== cursor);
        for (const text of changed) expect(cursors.open(scope, text), text).toBeUndefined();
      },
    ),
  );
});

it("refuses text that is no cursor", () => {
  for (const text of ["", "a", "x".repeat(43), "null", "é", "A".repeat(10_000)]) {
    expect(cursors.open(scope, text)).toBeUndefined();
  }
});

it("opens cursors of the previous secret and signs with the present one", () => {
  const rotated = createCursorSigner({ secret: "y".repeat(32), previousSecret: "x".repeat(32) });
  const after = createCursorSigner({ secret: "y".repeat(32) });
  const place = { date: 1_500, id: "m1" };
  expect(rotated.open(scope, cursors.sign(scope, place))).toEqual(place);
  expect(after.open(scope, rotated.sign(scope, place))).toEqual(place);
  expect(after.open(scope, cursors.sign(scope, place))).toBeUndefined();
});
