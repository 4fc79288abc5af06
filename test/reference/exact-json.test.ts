import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isObject, member, parseExact, printExact } from "./exact-json.ts";

describe("parseExact and printExact", () => {
  test("keep numbers, key order and repeated names as they came", () => {
    const text = '{"10":9007199254740993,"2":[1.0,-0,1E+5,1e400],"":{},"a":1,"a":2,"__proto__":[]}';
    expect(printExact(parseExact(text))).toBe(text);
  });

  test("drop white space and write strings in one form", () => {
    const text = ' { "a\\u0062" : [ "caf\\u00e9 \\/" , "\\ud800" , "\\u0041\\n" , true , null ] }\r\n';
    expect(printExact(parseExact(text))).toBe('{"ab":["café /","\\ud800","A\\n",true,null]}');
  });

  test("agree with the platform on what it prints itself", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom("", "\t", " "), (text, indent) => {
        const pretty = JSON.stringify(JSON.parse(text), null, indent);
        expect(printExact(parseExact(pretty))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  test.each(["", "{", "[1,]", "01", "{'a':1}", "nul", "1 2", '"\u0001"'])("refuse %j", (text) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
  });
});

test("of a repeated name the last counts", () => {
  const object = parseExact('{"a":1,"b":2,"a":"last"}');
  expect(isObject(object) && member(object, "a")).toBe("last");
});
