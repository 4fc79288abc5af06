import { expect, it } from "vitest";
import type { Component } from "./bill-of-materials.ts";
import { licenceProblems } from "./licences.ts";

const problemsOf = (licenses?: Component["licenses"]): string[] =>
  licenceProblems({
    metadata: { component: { name: "project" } },
    components: [{ name: "part", version: "1.0.0", ...(licenses !== undefined && { licenses }) }],
  });

it.each(["MIT", "(MIT OR GPL-3.0-only)", "(MIT AND Zlib)"])("accepts %s", (expression) => {
  expect(problemsOf([{ expression }])).toEqual([]);
});

it.each([
  "GPL-3.0-only",
  "(MIT AND GPL-3.0-only)",
  "SSPL-1.0",
  "MPL-2.0",
])("names what has %s", (expression) => {
  expect(problemsOf([{ expression }])).toEqual([`part@1.0.0: ${expression}`]);
});

it("names what does not say its licence, or has one more that is refused", () => {
  expect(problemsOf()).toEqual(["part@1.0.0: no licence"]);
  expect(problemsOf([{ license: { id: "MIT" } }, { license: { name: "Custom" } }])).toEqual([
    "part@1.0.0: MIT, Custom",
  ]);
});
