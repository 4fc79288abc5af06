import { expect, it } from "vitest";
import { visibleText } from "./visible-text.ts";

it.each([
  ["ESC", "\u001b[31m"],
  ["BEL", "\u0007"],
  ["CSI in one character", "\u009b31m"],
  ["DEL", "\u007f"],
  ["a new line", "a\nb"],
  ["a carriage return", "a\rb"],
  ["U+0085", "\u0085"],
  ["U+2028", "\u2028"],
  ["an override of direction", "\u202etxt"],
  ["an isolate", "\u2066a\u2069"],
  ["nothing of no width", "\u200b\ufeff"],
  ["half of a pair", "\ud800"],
  ["a tag beyond 16 bits", "\u{e0041}"],
])("%s shows, and means the same in JSON", (_, text) => {
  const shown = visibleText(text);
  expect(shown).toMatch(/^[\x20-\x7e]+$/);
  const json = visibleText(JSON.stringify(text));
  expect(json).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(json)).toBe(text);
});

it("leaves what shows, and cuts what is long", () => {
  expect(visibleText("Grüße, 世界 \\ 😀")).toBe("Grüße, 世界 \\ 😀");
  expect(visibleText("abcdef", 3)).toBe("abc… (6 characters)");
});
