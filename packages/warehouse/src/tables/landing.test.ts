import { expect, it } from "vitest";
import { headersOfLanding } from "./landing.ts";

it("converts headers back to headers by name, several of one name to an array", () => {
  const rows: [string, string][] = [
    ["a", "1"],
    ["constructor", "c"],
    ["a", "2"],
    ["empty", ""],
    ["a", "3"],
  ];
  expect(headersOfLanding(rows)).toEqual({ a: ["1", "2", "3"], constructor: "c", empty: "" });
  expect(headersOfLanding([])).toEqual({});
});
