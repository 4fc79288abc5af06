import { expect, it } from "vitest";
import { wellFormed } from "./json-parts.ts";

it.each([
  [String.raw`{"a\udc00":"\uD83d!"}`, '{"a\ufffd":"\ufffd!"}'],
  [String.raw`["\ud83d\ude00\ude00"]`, '["\\ud83d\\ude00\ufffd"]'],
  [String.raw`["\ud83d\ud83d\ude00"]`, '["\ufffd\\ud83d\\ude00"]'],
  [String.raw`["\\udc00",1.10,"\u00e9\n"]`, String.raw`["\\udc00",1.10,"\u00e9\n"]`],
])("replaces halves of surrogate pairs alone: %s", (text, expected) => {
  expect(wellFormed(text)).toBe(expected);
});
