import { expect, it } from "vitest";
import { visibleLines } from "./visible-lines.ts";

it("shows what would move the cursor or not be seen, and keeps lines, tabs and JSON", () => {
  expect(visibleLines("a\u001b[2J\u0007b\u009bc\r\nd\te")).toBe("a\\u001b[2J\\u0007b\\u009bc\\u000d\nd\te");
  expect(visibleLines("x\u202ey\u2028z\ud800")).toBe("x\\u202ey\\u2028z\\ud800");
  expect(visibleLines("café 😀 Ελλάδα")).toBe("café 😀 Ελλάδα");
  const value = { name: "\u0085\u200b\u{e0001}" };
  expect(JSON.parse(visibleLines(JSON.stringify(value)))).toEqual(value);
});
