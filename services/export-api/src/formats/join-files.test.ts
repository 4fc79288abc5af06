import { describe, expect, it } from "vitest";
import { contentOf, fileOf, type Group } from "./file.fixture.ts";
import { joinFiles } from "./join-files.ts";

const FIRST: readonly Group[] = [
  { rows: 2, columns: ["aa", "bbb"] },
  { rows: 1, columns: ["c", "dddd"] },
];
const SECOND: readonly Group[] = [{ rows: 300, columns: ["e".repeat(70), "f"] }];

const cut = (file: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(file.length / size) }, (_, index) =>
    file.subarray(index * size, (index + 1) * size),
  );

const joined = (files: readonly Buffer[], { size = 1_000, facts = {} } = {}) => {
  const join = joinFiles(() => facts);
  const out: Buffer[] = [];
  const partial: Buffer[] = [];
  for (const file of files) {
    for (const chunk of cut(file, size)) {
      out.push(join.pass(chunk));
      partial.push(Buffer.concat(out));
    }
    join.endStep();
  }
  out.push(join.end());
  return { file: Buffer.concat(out), partial, count: join.count() };
};

const textsOf = (file: Buffer) =>
  contentOf(file).groups.map(({ rows, columns }) => ({ rows, columns: columns.map(({ text }) => text) }));

describe("joined files", () => {
  it.each([1, 3, 5, 11, 12, 13, 64, 10_000])("are one, whose chunks have %d bytes", (size) => {
    const { file, count } = joined([fileOf(FIRST), fileOf(SECOND), fileOf([]), fileOf(FIRST)], { size });
    expect(count).toBe(306);
    expect(contentOf(file).rows).toBe(306);
    expect(textsOf(file)).toEqual([...FIRST, ...SECOND, ...FIRST]);
    const [first] = contentOf(file).groups;
    expect(first?.start).toBe(4);
  });

  it("have the facts in their footer, and what all files share", () => {
    const content = contentOf(
      joined([fileOf(FIRST), fileOf(SECOND)], { facts: { count: "303", x: "" } }).file,
    );
    expect(content.facts).toEqual({ count: "303", x: "" });
    expect(content.ids).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("lead to no indexes and filters, whose places would be wrong", () => {
    for (const { columns } of contentOf(joined([fileOf(FIRST), fileOf(SECOND)]).file).groups)
      for (const { known } of columns)
        expect(known).toEqual([
          [2, 3],
          [3, 9, 11],
        ]);
  });

  it("may have many groups, and none", () => {
    const many = Array.from({ length: 40 }, (_, index) => ({ rows: 1, columns: [`text ${index}`] }));
    expect(textsOf(joined([fileOf(many), fileOf(many)], { size: 100 }).file)).toEqual([...many, ...many]);
    const empty = contentOf(joined([fileOf([])]).file);
    expect([empty.rows, empty.groups]).toEqual([0, []]);
  });

  it("are no whole file before the last byte, wherever they are cut", () => {
    const { file, partial } = joined([fileOf(FIRST), fileOf(SECOND), fileOf(FIRST)], { size: 1 });
    for (const part of partial.filter(({ length }) => length > 4))
      expect(part.subarray(-4).toString("latin1")).not.toBe("PAR1");
    expect(() => contentOf(partial.at(-1) ?? file)).toThrow("no whole file");
  });

  it("keep the footer of a large file, although it came in many chunks", () => {
    const large = fileOf([{ rows: 1, columns: ["x".repeat(3_000_000)] }]);
    const { groups } = contentOf(joined([large, large], { size: 65_536 }).file);
    expect(groups.flatMap(({ columns }) => columns.map(({ text }) => text.length))).toEqual([
      3_000_000, 3_000_000,
    ]);
  });
});

describe("a file that is not whole", () => {
  const whole = fileOf(FIRST);
  it.each([
    ["nothing", Buffer.alloc(0)],
    ["its magic alone", whole.subarray(0, 4)],
    ["a beginning", whole.subarray(0, -1)],
    ["all but its end", whole.subarray(0, -8)],
    [
      "an exception behind its rows",
      Buffer.concat([whole.subarray(0, 12), Buffer.from("\r\n__exception__\r\nCode: 241")]),
    ],
    [
      "a whole file with an exception behind it",
      Buffer.concat([whole, Buffer.from("Code: 241. DB::Exception")]),
    ],
    ["a footer of nonsense", Buffer.concat([whole.subarray(0, -20), whole.subarray(-8)])],
    [
      "a footer that is longer than the file",
      Buffer.concat([whole.subarray(0, -8), Buffer.from([255, 255, 0, 0]), Buffer.from("PAR1")]),
    ],
  ])("breaks the answer: %s", (_, broken) => {
    for (const files of [[broken], [fileOf(SECOND), broken], [broken, fileOf(SECOND)]])
      expect(() => joined(files)).toThrow("a part of the Parquet file");
  });

  it("and neither has one of other columns", () => {
    expect(() => joined([fileOf(FIRST), fileOf(SECOND, { schema: "other" })])).toThrow("other columns");
    expect(() => joined([fileOf(FIRST), fileOf(SECOND, { madeBy: "another version" })])).not.toThrow();
  });
});
