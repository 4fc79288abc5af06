import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memberTexts } from "../json/json-text.ts";
import { LEGACY_FIELDS, type LegacyList, RECORD_KINDS } from "../kinds/record-kinds.ts";
import { createView, LEGACY_VERSIONS, type View } from "./legacy-view.ts";

const viewOf = (view: View, text: string): string => {
  const bytes = Buffer.from(text);
  const source = Buffer.concat([Buffer.from('"},{"'), bytes, Buffer.from('\n{"_id":1')]);
  const target = Buffer.alloc(bytes.length + 3, "!");
  const end = view(source, 5, 5 + bytes.length, target, 3);
  expect(target.subarray(0, 3).toString()).toBe("!!!");
  expect(target.subarray(end).every((byte) => byte === 33)).toBe(true);
  return target.subarray(3, end).toString();
};

const VERSIONS = (["conversations", "messages"] as const).flatMap((list) =>
  LEGACY_VERSIONS.map((version) => ({ list, version })),
);
const ALL_FIELDS: Readonly<Record<LegacyList, readonly string[]>> = {
  conversations: RECORD_KINDS.conversation.form.fields.map(([name]) => name),
  messages: RECORD_KINDS.message.form.fields.map(([name]) => name),
};
const NAMES = [...new Set([...ALL_FIELDS.conversations, ...ALL_FIELDS.messages])];

const literal = fc
  .array(
    fc.constantFrom(
      "a",
      "_id",
      '\\"',
      "\\\\",
      "\\n",
      "\\u0022",
      "\\ud83d",
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "é",
      "😀",
    ),
    { maxLength: 6 },
  )
  .map((pieces) => `"${pieces.join("")}"`);
const number = fc.constantFrom("0", "-0", "1.0", "1E+5", "9007199254740993", "0.10", "-1e-7", "1e400");
const innerName = fc.oneof(
  fc.constantFrom(...NAMES).map((name) => JSON.stringify(name)),
  literal,
);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(number, literal, fc.constantFrom("null", "true", "false", "[]", "{}", '""')),
    fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
    fc
      .array(fc.tuple(innerName, tie("value")), { maxLength: 4 })
      .map((members) => `{${members.map(([key, text]) => `${key}:${text}`).join(",")}}`),
  ),
}));
const ownName = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...NAMES) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("", "_i", "_ix", "xid", "_idx", "é", "senders", "__proto__", "a b"),
  },
);
const members = fc.uniqueArray(fc.tuple(ownName, value), { selector: ([name]) => name, maxLength: 20 });

const written = (parts: readonly (readonly [string, string])[]): string =>
  `{${parts.map(([name, text]) => `"${name}":${text}`).join(",")}}`;

describe.each(VERSIONS)("the view of $list $version", ({ list, version }) => {
  const fields = LEGACY_FIELDS[list][version];
  const view = createView(fields);

  it("has its fields of any record, their texts untouched", () => {
    fc.assert(
      fc.property(members, (parts) => {
        const picked = parts.filter(([name]) => fields.includes(name));
        expect(viewOf(view, written(parts))).toBe(written(picked));
      }),
      { numRuns: 500 },
    );
  });

  it("has all of its fields of a whole record, and equals what a parser picks", () => {
    const values = fc.array(value, {
      minLength: ALL_FIELDS[list].length,
      maxLength: ALL_FIELDS[list].length,
    });
    fc.assert(
      fc.property(values, (texts) => {
        const text = written(ALL_FIELDS[list].map((name, index) => [name, texts[index] ?? "null"]));
        const viewed = viewOf(view, text);
        expect(Object.keys(JSON.parse(viewed) as object).sort()).toEqual([...fields].sort());
        const all = memberTexts(text);
        for (const [name, member] of memberTexts(viewed)) expect(member).toBe(all.get(name));
      }),
      { numRuns: 100 },
    );
  });
});

it("takes the fields of each version from the record of the specification", () => {
  for (const { list, version } of VERSIONS) {
    expect(ALL_FIELDS[list]).toEqual(expect.arrayContaining([...LEGACY_FIELDS[list][version]]));
  }
  const sizes = VERSIONS.map(({ list, version }) => new Set(LEGACY_FIELDS[list][version]).size);
  expect(sizes).toEqual([10, 10, 18, 8, 9, 11]);
  for (const version of LEGACY_VERSIONS) {
    expect(LEGACY_FIELDS.conversations[version]).toEqual(
      expect.arrayContaining(["is_engaged", "is_escalated", "platform"]),
    );
  }
});

it("ends on bytes that are no record", () => {
  const view = createView(["_id"]);
  for (const text of [
    "",
    "{",
    '{"_id',
    '{"_id"',
    '{"_id":',
    '{"_id":"a',
    '{"_id":"\\',
    "null",
    "[]",
    '{"a":{"b":1',
  ]) {
    const source = Buffer.from(text);
    expect(view(source, 0, source.length, Buffer.alloc(100), 0)).toBeLessThan(100);
  }
});
