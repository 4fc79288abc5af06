import { describe, expect, it } from "vitest";
import { createComparison } from "./comparison.ts";

const record = (id: string, text = "x"): { id: string; json: string } => ({
  id,
  json: `{"_id":"${id}","text":"${text}"}`,
});
const asExported = (id: string, text = "x"): string =>
  `{"_id":"${id}","record_last_updated":"2026-11-01T00:00:00.000000+00:00","text":"${text}"}`;
const expected = ["a", "b", "c", "d"].map((id) => record(id));

const compare = (...pages: string[][]): ReturnType<ReturnType<typeof createComparison>["finish"]> => {
  const comparison = createComparison(expected);
  for (const page of pages) comparison.take(page);
  return comparison.finish();
};
const ids = (text: string): string[] => text.split("").map((id) => asExported(id));

describe("createComparison", () => {
  it("finds equal lists equal, whatever the pages", () => {
    for (const pages of [[ids("abcd")], [ids("a"), ids("bc"), [], ids("d")]]) {
      const { problems, examples, read, expected: wanted } = compare(...pages);
      expect({ problems, examples }).toEqual({ problems: 0, examples: [] });
      expect(read).toEqual(wanted);
      expect(read.records).toBe(4);
    }
  });

  it.each([
    ["missing: c", [ids("abd")]],
    ["unexpected or repeated: b", [ids("ab"), ids("bcd")]],
    ["unexpected or repeated: e", [ids("abcde")]],
    ["out of order: b", [ids("acbd")]],
    ["different: b", [[asExported("a"), asExported("b", "y"), ...ids("cd")]]],
  ])("names what is %s", (problem, pages) => {
    const { problems, examples } = compare(...pages);
    expect(problems).toBe(1);
    expect(examples[0]).toContain(problem);
  });

  it("has another checksum for another content and for a repeated record", () => {
    for (const pages of [[[asExported("a", "y"), ...ids("bcd")]], [ids("abbcd")], [ids("abc")]]) {
      const { read, expected: wanted } = compare(...pages);
      expect(read.checksum).not.toBe(wanted.checksum);
    }
  });

  it("counts every problem and shows the first few", () => {
    const { problems, examples } = compare(ids("efghijk"));
    expect(problems).toBe(11);
    expect(examples).toHaveLength(5);
  });
});
