import { expect, it } from "vitest";
import { toBusMessage, toOffset } from "./message.ts";

it("reads offsets up to the largest safe integer and refuses larger ones", () => {
  expect(toOffset("9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
  expect(() => toOffset("9007199254740993")).toThrow("not a safe integer");
  expect(() => toOffset("x")).toThrow("not a safe integer");
});

it("carries the message with numbers for offset and time", () => {
  const value = Buffer.from("v");
  const message = { key: null, value, timestamp: "1700000000123", offset: "7", attributes: 0, headers: {} };
  expect(toBusMessage("t", 3, message)).toEqual({
    topic: "t",
    partition: 3,
    offset: 7,
    key: null,
    value,
    headers: {},
    timestamp: 1700000000123,
  });
  expect(toBusMessage("t", 3, message).value).toBe(value);
});
