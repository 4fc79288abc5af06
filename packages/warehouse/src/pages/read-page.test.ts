import { expect, it } from "vitest";
import { boundOfAnswer } from "./read-page.ts";
import { stepEndOfAnswer } from "./sql/line-sql.ts";

it("reads the end of the first rows of a window", () => {
  expect(boundOfAnswer("1791072000000000 12 7\n")).toEqual({
    date: 1_791_072_000_000_000,
    rows: 12,
    keys: 7,
  });
  expect(boundOfAnswer("0 0 0\n")).toEqual({ date: 0, rows: 0, keys: 0 });
  expect(stepEndOfAnswer("1791072000000000\n")).toBe(1_791_072_000_000_000);
  expect(stepEndOfAnswer("")).toBeNull();
});

it.each([
  "",
  "\n",
  "\\N 0 0\n",
  "nan 1 1\n",
  "1 2\n",
  "1 2 3",
  "1 2 3\n\n1 2 3\n1 2 3\n",
  "-1 2 3\n",
])("takes %j for no answer about a window", (answer) => {
  expect(() => boundOfAnswer(answer)).toThrow(expect.objectContaining({ causeName: "UNEXPECTED_ANSWER" }));
  if (answer !== "")
    expect(() => stepEndOfAnswer(answer)).toThrow(
      expect.objectContaining({ causeName: "UNEXPECTED_ANSWER" }),
    );
});
