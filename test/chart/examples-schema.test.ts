import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { CHART } from "./values-table.ts";

type Values = { readonly [name: string]: unknown };

const read = (path: string): string => readFileSync(join(CHART, path), "utf8");
const isMap = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** As Helm merges values: null removes. */
const merge = (base: Values, over: Values): Values => {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const former = merged[name];
    if (value === null) delete merged[name];
    else merged[name] = isMap(value) && isMap(former) ? merge(former, value) : value;
  }
  return merged;
};

const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
const validate = ajv.compile(JSON.parse(read("values.schema.json")) as Values);
const values = parse(read("values.yaml")) as Values;

/** Helm does the same, where it is installed. */
it.each(
  globSync("examples/**/*.yaml", { cwd: CHART }).toSorted(),
)("has the values that the chart knows: %s", (path) => {
  validate(merge(values, parse(read(path)) as Values));
  expect(validate.errors).toBeNull();
});
