import fc from "fast-check";
import { expect, it } from "vitest";
import { ApiError } from "../http/api-error.ts";
import { CLIENT } from "../http/app.fixture.ts";
import { createPageLinks, type PageLinks } from "./page-link.ts";
import type { PageRequest } from "../parameters/window-parameters.ts";

const wanted: PageRequest = {
  filter: "created",
  since: 1_000,
  to: 2_000,
  sinceText: "1970-01-01T00:00:00.001Z",
  toText: undefined,
  pageSize: 100,
  pageSizeGiven: false,
  conversationId: undefined,
  cursor: undefined,
};
const linksWith = (secret: string, previousSecret?: string): PageLinks =>
  createPageLinks({ secret, previousSecret, linkBounds: "same", form: "v2" });
const links = linksWith("x".repeat(32));
const position = fc.record({ date: fc.nat(), id: fc.string({ minLength: 1, unit: "binary" }) });

const sign = (by: PageLinks, next: { date: number; id: string }): string => {
  const query = by.next(CLIENT, "messages", wanted, { next });
  return new URLSearchParams(query ?? "").get("cursor") ?? "";
};

const open = (by: PageLinks, cursor: string, changes: Partial<PageRequest> = {}, endpoint = "messages") => {
  try {
    return by.query(CLIENT, endpoint, { ...wanted, ...changes, cursor }).after;
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      answer: { status: 400, details: "cursor: does not belong to this request" },
    });
    return undefined;
  }
};

it("opens a cursor that it signed, for the same request alone", () => {
  fc.assert(
    fc.property(position, (position) => {
      const cursor = sign(links, position);
      expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(open(links, cursor)).toEqual(position);
      for (const changes of [
        { filter: "updated" as const },
        { conversationId: "c" },
        { since: 999 },
        { to: 2_001 },
      ]) {
        expect(open(links, cursor, changes)).toBeUndefined();
      }
      expect(open(links, cursor, {}, "conversations")).toBeUndefined();
      const other = { ...CLIENT, clientId: "other" };
      expect(() => links.query(other, "messages", { ...wanted, cursor })).toThrow(ApiError);
    }),
  );
});

it("carries how far apart the records of the page lay", () => {
  const next = { date: 1_500, id: "7:m:1" };
  for (const pace of [undefined, 0, 250]) {
    const end = { next, ...(pace !== undefined && { pace }) };
    const cursor = new URLSearchParams(links.next(CLIENT, "messages", wanted, end) ?? "").get("cursor") ?? "";
    const query = links.query(CLIENT, "messages", { ...wanted, cursor });
    expect([query.after, query.pace]).toEqual([next, pace]);
  }
});

it("refuses a cursor with any character changed, added or removed", () => {
  fc.assert(
    fc.property(
      position,
      fc.nat(),
      fc.constantFrom("A", "a", "0", "_", "-", "=", ".", " ", "!"),
      (position, place, character) => {
        const cursor = sign(links, position);
        const at = place % (cursor.length + 1);
        const changed = [
          cursor.slice(0, at) + character + cursor.slice(at + 1),
          cursor.slice(0, at) + character + cursor.slice(at),
          cursor.slice(0, at) + cursor.slice(at + 1),
        ].filter((text) => text !== cursor);
        for (const text of changed) expect(open(links, text), text).toBeUndefined();
      },
    ),
  );
});

it("refuses text that is no cursor", () => {
  const signature = sign(links, { date: 1_500, id: "m1" }).slice(0, 43);
  for (const text of ["", "a", "x".repeat(43), signature, "null", "é", "A".repeat(10_000)]) {
    expect(open(links, text)).toBeUndefined();
  }
});

it("opens cursors of the previous secret and signs with the present one", () => {
  const rotated = linksWith("y".repeat(32), "x".repeat(32));
  const after = linksWith("y".repeat(32));
  const place = { date: 1_500, id: "m1" };
  expect(open(rotated, sign(links, place))).toEqual(place);
  expect(open(after, sign(rotated, place))).toEqual(place);
  expect(open(after, sign(links, place))).toBeUndefined();
});
