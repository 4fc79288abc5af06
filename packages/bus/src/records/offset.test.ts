import { expect, it } from "vitest";
import { toOffset } from "./offset.ts";

it("reads offsets up to the largest safe integer and refuses larger ones", () => {
  expect(toOffset("9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
  expect(toOffset(7n)).toBe(7);
  expect(() => toOffset("9007199254740993")).toThrow("not a safe integer");
  expect(() => toOffset(9007199254740993n)).toThrow("not a safe integer");
  expect(() => toOffset("x")).toThrow("not a safe integer");
});
