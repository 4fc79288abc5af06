import { describe, expect, it } from "vitest";
import { z } from "zod";
import { readParameters, wholeNumber } from "./parameters.ts";

describe("the parameters of any operation", () => {
  const schema = z.object({
    limit: wholeNumber(1, 5, 3).optional(),
    name: z.string(),
    other: z.string().nullish(),
  });
  const readAny = (query: string) => readParameters(schema, `/x?${query}`);

  it("are the values of their schema, and only those that were given", () => {
    const { values, given, problems } = readAny("name=a%20b&limit=5&other=null");
    expect({ values, given: [...given].sort(), problems }).toEqual({
      values: { name: "a b", limit: 5 },
      given: ["limit", "name"],
      problems: [],
    });
  });

  it("take an empty value for absent where the schema takes null, and nowhere else", () => {
    expect(readAny("name=&other=").values).toEqual({ name: "" });
    expect(readAny("name=null").values).toEqual({ name: "null" });
    expect(readAny("name=x&limit=").problems).toEqual(["limit: must be an integer from 1 to 5"]);
  });

  it("name what is missing, unknown, repeated and wrong, and have no values then", () => {
    const { values, problems } = readAny("limit=6&limit=7&foo=1&Name=x");
    expect(values).toEqual({});
    expect(problems.sort()).toEqual([
      "Name: unknown parameter (did you mean name?)",
      "foo: unknown parameter",
      "limit: given more than once",
      "limit: must be an integer from 1 to 5",
      "name: is required",
    ]);
  });

  it.each([
    ["limits", "limit"],
    ["Limit[]", "limit"],
    ["li-mit", "limit"],
    ["namme", "name"],
    ["page", undefined],
    ["me", undefined],
    ["[]", undefined],
    ["x".repeat(10_000), undefined],
  ])("suggest for %s: %s", (given, meant) => {
    const hint = meant === undefined ? "" : ` (did you mean ${meant}?)`;
    expect(readAny(`name=x&${given}=1`).problems).toEqual([`${given}: unknown parameter${hint}`]);
  });

  it.each([
    "__proto__",
    "constructor",
    "toString",
    "a[b]",
    "__proto__[x]",
    "constructor.prototype.x",
  ])("take %s for an unknown name and touch no prototype", (name) => {
    const { values, problems } = readAny(`name=x&${encodeURIComponent(name)}=polluted&${name}=polluted`);
    expect(problems).toEqual([`${name}: unknown parameter`]);
    expect(values).toEqual({});
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
    expect(Object.prototype).not.toHaveProperty("polluted");
  });
});
