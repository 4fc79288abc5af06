import fc from "fast-check";
import { expect, it } from "vitest";
import { formatRateWindows, parseRateWindows, type RateWindow } from "./rate-windows.ts";

it.each<[string, RateWindow[]]>([
  ["off", []],
  ["10/1s", [{ requests: 10, seconds: 1 }]],
  [
    "10/1s,100/1m,15000/1d",
    [
      { requests: 10, seconds: 1 },
      { requests: 100, seconds: 60 },
      { requests: 15_000, seconds: 86_400 },
    ],
  ],
  [
    " 5/2h , 1000000/86400s ",
    [
      { requests: 5, seconds: 7_200 },
      { requests: 1_000_000, seconds: 86_400 },
    ],
  ],
])("reads %j", (text, windows) => {
  expect(parseRateWindows(text)).toEqual(windows);
});

it.each([
  "",
  ",",
  "10",
  "10/s",
  "10/1",
  "10/1w",
  "10/1S",
  "0/1s",
  "-1/1s",
  "1.5/1s",
  "10/0s",
  "1000001/1s",
  "10/86401s",
  "10/2d",
  "10/1s,",
  "10/1s,off",
  "OFF",
  "10/60s,20/1m",
  "10/1s;20/1m",
  "1e3/1s",
  "010/1s",
])("refuses %j", (text) => {
  expect(parseRateWindows(text)).toBeUndefined();
});

it("writes the largest unit that fits", () => {
  const windows = [1, 90, 60, 3_600, 5_400, 86_400].map((seconds) => ({ requests: 7, seconds }));
  expect(formatRateWindows(windows)).toBe("7/1s,7/90s,7/1m,7/1h,7/90m,7/1d");
  expect(formatRateWindows([])).toBe("off");
});

it("reads back what it writes", () => {
  const window = fc.record({
    requests: fc.integer({ min: 1, max: 1_000_000 }),
    seconds: fc.integer({ min: 1, max: 86_400 }),
  });
  const windows = fc.uniqueArray(window, { selector: ({ seconds }) => seconds, maxLength: 5 });
  fc.assert(
    fc.property(windows, (given) => {
      expect(parseRateWindows(formatRateWindows(given))).toEqual(given);
    }),
  );
});
