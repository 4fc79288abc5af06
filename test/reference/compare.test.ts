import { describe, expect, test } from "vitest";
import {
  checksum,
  normaliseExported,
  normalisePage,
  pickFields,
  windowCreated,
  windowUpdated,
} from "./compare.ts";
import type { ExpectedRecord } from "./fold.ts";

describe("normaliseExported", () => {
  test("leaves only what has to be equal", () => {
    const text =
      '{ "_id":"c\\u0031", "record_last_updated":"2026-01-01", "n": 1.0, "x":{"record_last_updated":1} }';
    expect(normaliseExported(text)).toEqual({
      id: "c1",
      json: '{"_id":"c1","n":1.0,"x":{"record_last_updated":1}}',
    });
    expect(normaliseExported('{"end_user_id":"u"}').id).toBe("u");
  });

  test.each(["[]", "{}", '{"_id":1}'])("refuses %s", (text) => {
    expect(() => normaliseExported(text)).toThrow(TypeError);
  });
});

test("normalisePage keeps the order of a page", () => {
  const page =
    '{"data":[{"_id":"b","n":1.0,"record_last_updated":null},{"_id":"a"}],"meta":{"next_page_uri":null}}';
  expect(normalisePage(page)).toEqual([
    { id: "b", json: '{"_id":"b","n":1.0}' },
    { id: "a", json: '{"_id":"a"}' },
  ]);
  expect(() => normalisePage('{"errors":[]}')).toThrow(TypeError);
});

test("pickFields keeps order and texts, and looks at a record's own names alone", () => {
  const text = '{"b":{"a":1,"c":2}, "a":1.0,"c":"\\u0061","10":0}';
  expect(pickFields(text, ["a", "b", "10", "none"])).toBe('{"b":{"a":1,"c":2},"a":1.0,"10":0}');
  expect(() => pickFields("[]", [])).toThrow(TypeError);
});

describe("windows", () => {
  const record = (id: string, dateCreated: bigint, dateUpdated: bigint): ExpectedRecord => {
    return { id, dateCreated, dateUpdated, exportedAt: 0n, conversationId: null, json: "{}" };
  };
  const records = [
    record("😀", 10n, 30n),
    record("\uff5a", 10n, 20n),
    record("b", 9n, 20n),
    record("a", 10n, 40n),
    record("B", 20n, 41n),
  ];
  const expected = new Map([["acme", new Map(records.map((one) => [one.id, one]))]]);

  test("the lower bound is in, the upper out; order is by date, then by the bytes of the id", () => {
    const created = windowCreated(expected, "acme", 9n, 20n).map((one) => one.id);
    expect(created).toEqual(["b", "a", "\uff5a", "😀"]);
    const updated = windowUpdated(expected, "acme", 20n, 41n).map((one) => one.id);
    expect(updated).toEqual(["b", "\uff5a", "😀", "a"]);
  });

  test("another client has nothing", () => {
    expect(windowCreated(expected, "globex", 0n, 100n)).toEqual([]);
  });
});

describe("checksum", () => {
  const [a, b] = [
    { id: "a", json: "{}" },
    { id: "b", json: "{}" },
  ];

  test("does not depend on the order", () => {
    expect(checksum([a, b])).toBe(checksum([b, a]));
    expect(checksum([a, b])).toMatch(/^[0-9a-f]{16}$/);
  });

  test("depends on everything else", () => {
    const sums = [
      [],
      [a],
      [b],
      [a, b],
      [a, a],
      [a, b, b],
      [a, { ...b, json: "[]" }],
      [{ id: "a{}", json: "" }],
    ];
    expect(new Set(sums.map((records) => checksum(records))).size).toBe(sums.length);
  });
});
