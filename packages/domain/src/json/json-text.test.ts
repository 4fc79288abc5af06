import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countKeys } from "./json-object.ts";
import {
  compact,
  countKeyTexts,
  itemTexts,
  memberTexts,
  parseExactly,
  repeatedKeys,
  replaceHalfPairs,
  withoutRepeatedKeys,
} from "./json-text.ts";

const asLeaving = (value: string): string =>
  JSON.stringify(value)
    .replaceAll("\u0085", "\\u0085")
    .replaceAll("\u2028", "\\u2028")
    .replaceAll("\u2029", "\\u2029");

type Written = { readonly text: string; readonly compacted: string };
type Member = { readonly key: Written; readonly name: string; readonly value: Written };

const space = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n", "  ");

const piece = fc.constantFrom<[raw: string, value: string]>(
  ...[
    "a",
    "1",
    "0",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "é",
    "😀",
    "\u0085",
    "\u2028",
    "\u2029",
    "\u007f",
    "/",
    "-0",
    "1.0",
    "e5",
  ].map((char): [string, string] => [char, char]),
  ['\\"', '"'],
  ["\\\\", "\\"],
  ["\\/", "/"],
  ["\\n", "\n"],
  ["\\u0041", "A"],
  ["\\u0031", "1"],
  ["\\u00E9", "é"],
  ["\\ud83d", "\ud83d"],
  ["\\uDE00", "\ude00"],
  ["\\u0000", "\0"],
  ["\\u2028", "\u2028"],
);

const stringLiteral = fc.array(piece, { maxLength: 6 }).map((pieces) => {
  const value = pieces.map(([, one]) => one).join("");
  return { text: `"${pieces.map(([raw]) => raw).join("")}"`, compacted: asLeaving(value), value };
});

const numberText = fc.oneof(
  fc.constantFrom(
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.50",
    "100",
    "1e5",
    "1E+5",
    "1e-7",
    "1e21",
    "1e400",
    "0.1",
    "-0.1",
  ),
  fc.constantFrom(
    "0.000001",
    "0.0000001",
    "0.00000012",
    "-0.000001",
    "0.10",
    "10.01",
    "0e0",
    "-0e1",
    "1.5e300",
  ),
  fc.constantFrom("999999999999999", "9007199254740993", "123456789.123456", "12345678.1234567", "5e-324"),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(
      fc.constantFrom("", "-"),
      fc.stringMatching(/^(0|[1-9]\d{0,17})$/),
      fc.stringMatching(/^(\.\d{1,12})?$/),
    )
    .map((parts) => parts.join("")),
);

const scalar: fc.Arbitrary<Written> = fc.oneof(
  numberText.map((text) => ({ text, compacted: text })),
  stringLiteral,
  fc.constantFrom("null", "true", "false").map((text) => ({ text, compacted: text })),
);

const name = fc.oneof(
  stringLiteral,
  fc
    .constantFrom("1", "10", "2", "01", "-1", "4294967295", "__proto__", "a", "b", "toString")
    .map((value) => ({
      text: JSON.stringify(value),
      compacted: JSON.stringify(value),
      value,
    })),
);

function memberOf(value: fc.Arbitrary<Written>): fc.Arbitrary<Member> {
  return fc.record({ key: name, value }).map(({ key, value }) => ({ key, value, name: key.value }));
}

function arrayOf(items: readonly Written[], gaps: string): Written {
  const text = items.map((item) => gaps + item.text + gaps).join(",");
  return { text: `[${text}${gaps}]`, compacted: `[${items.map((item) => item.compacted).join(",")}]` };
}

function objectOf(members: readonly Member[], gaps: string): Written {
  const text = members
    .map(({ key, value }) => `${gaps}${key.text}${gaps}:${gaps}${value.text}${gaps}`)
    .join(",");
  const compacted = members.map(({ key, value }) => `${key.compacted}:${value.compacted}`).join(",");
  return { text: `{${text}${gaps}}`, compacted: `{${compacted}}` };
}

const distinct = { selector: (member: Member): string => member.name, maxLength: 5 };

const { value, container } = fc.letrec<{ value: Written; container: Written }>((tie) => ({
  value: fc.oneof({ depthSize: "small", withCrossShrink: true }, scalar, tie("container")),
  container: fc.oneof(
    fc.tuple(fc.array(tie("value"), { maxLength: 5 }), space).map(([items, gaps]) => arrayOf(items, gaps)),
    fc
      .tuple(fc.uniqueArray(memberOf(tie("value")), distinct), space)
      .map(([members, gaps]) => objectOf(members, gaps)),
  ),
}));

describe("compact", () => {
  it("drops white space, keeps numbers and order, writes strings in one form", () => {
    fc.assert(
      fc.property(container, space, ({ text, compacted }, around) => {
        expect(compact(around + text + around)).toBe(compacted);
        expect(compact(compacted)).toBe(compacted);
      }),
      { numRuns: 500 },
    );
  });
});

describe("withoutRepeatedKeys", () => {
  it("leaves each key at its first place with its last value, as parsing does", () => {
    const objects = fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "é"), container), { maxLength: 6 });
    fc.assert(
      fc.property(objects, space, (members, gap) => {
        const texts = members.map(([key, { text }]) => `${gap}"${key}"${gap}:${gap}${text}`);
        const text = `[{"x":{${texts.join(",")}${gap}}}]`;
        const last = new Map(members.map(([key, { compacted }]) => [key, compacted]));
        const expected = [...last].map(([key, compacted]) => `"${key}":${compacted}`).join(",");
        expect(compact(withoutRepeatedKeys(text))).toBe(`[{"x":{${expected}}}]`);
      }),
      { numRuns: 500 },
    );
  });

  it("leaves as many keys as parsed values have", () => {
    const members = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.jsonValue()), { maxLength: 6 });
    fc.assert(
      fc.property(members, (members) => {
        const text = `{${members.map(([key, value]) => `"${key}":${JSON.stringify(value)}`).join(",")}}`;
        // Node's parser may mistake keys with escapes.
        if (text.includes("\\")) return;
        expect(withoutRepeatedKeys(text)).toBe(JSON.stringify(JSON.parse(text)));
        expect(countKeyTexts(withoutRepeatedKeys(text))).toBe(countKeys(JSON.parse(text) as object));
      }),
    );
  });
});

describe("parseExactly", () => {
  it("reads a name as it stands, though V8 has just read a similar one", () => {
    for (const before of ["\\\\", "p\\\\u", "p\\\\"]) JSON.parse(`{"q":1,"${before}":2}`);
    const text = String.raw`[{"q":1,"\u5e74":{"q":1,"p\n":2}},{"q":1,"p\u006bx":2}, {"q" : "\\" , "p\"":2 }]`;
    expect(parseExactly(text, 5)).toEqual([
      { q: 1, 年: { q: 1, "p\n": 2 } },
      { q: 1, pkx: 2 },
      { q: "\\", 'p"': 2 },
    ]);
  });

  it("reads what was printed", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.stringify(parseExactly(text, 100))).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("repeatedKeys", () => {
  it("names each by its path, once, however it is spelled", () => {
    expect(repeatedKeys('{"a":"}\\"a\\":","b":[{"a":1},{"c":2,"\\u0063":3,"c":4}],"a":null}')).toEqual([
      ["b", "1", "c"],
      ["a"],
    ]);
  });

  it("finds none where parsing drops none", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(repeatedKeys(text)).toEqual([]);
      }),
    );
  });
});

describe("replaceHalfPairs", () => {
  it("makes every string well-formed and changes no other", () => {
    fc.assert(
      fc.property(fc.array(stringLiteral), (literals) => {
        const text = `[${literals.map((literal) => literal.text).join(",")}]`;
        const expected = literals.map(({ value }) => value.toWellFormed());
        expect(JSON.parse(replaceHalfPairs(text))).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("memberTexts", () => {
  it("cuts every member out as it was written", () => {
    const members = fc.uniqueArray(memberOf(value), { ...distinct, maxLength: 8 });
    fc.assert(
      fc.property(members, space, space, (members, gaps, around) => {
        const { text } = objectOf(members, gaps);
        const expected = new Map(members.map(({ name, value }) => [name, value.text]));
        expect(memberTexts(around + text + around)).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  it("takes the last of a repeated key", () => {
    expect(memberTexts('{"a":1,"\\u0061":{"b":2}}').get("a")).toBe('{"b":2}');
  });

  it("does not take quotes and backslashes for the end of a string", () => {
    const text = '{"a":"\\\\\\\\","b":"\\\\\\"}","c":["]","\\\\"],"d":{"}":"{"},"e\\"":1}';
    expect([...memberTexts(text)]).toEqual([
      ["a", '"\\\\\\\\"'],
      ["b", '"\\\\\\"}"'],
      ["c", '["]","\\\\"]'],
      ["d", '{"}":"{"}'],
      ['e"', "1"],
    ]);
  });
});

describe("itemTexts", () => {
  it("cuts every item out as it was written", () => {
    const items = fc.array(fc.tuple(value, space, space), { maxLength: 8 });
    fc.assert(
      fc.property(items, space, space, (items, gap, around) => {
        const written = items.map(([item, before, after]) => before + item.text + after).join(",");
        const text = items.length === 0 ? `[${gap}]` : `[${written}]`;
        expect(itemTexts(around + text + around)).toEqual(items.map(([item]) => item.text));
      }),
      { numRuns: 500 },
    );
  });
});
