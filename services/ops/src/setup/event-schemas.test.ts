import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type AnySchemaObject } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { asyncApi } from "./async-api.ts";
import { eventSchemas } from "./event-schemas.ts";

const docs = join(import.meta.dirname, "..", "..", "..", "..", "docs");
const examples = globSync("*-structured.txt", { cwd: join(docs, "examples/events") }).map((name) => {
  const [, value = ""] = readFileSync(join(docs, "examples/events", name), "utf8").split("\n\n");
  return JSON.parse(value) as { type: string; data: Record<string, unknown> };
});

function validatorOf(type: string) {
  const file = eventSchemas().find(({ name }) => name === `${type}.schema.json`);
  return new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
    JSON.parse(file?.text ?? "") as AnySchemaObject,
  );
}

describe("the JSON Schema of the events", () => {
  it("is as make generate writes it, the AsyncAPI document beside it", async () => {
    const made = [...eventSchemas(), asyncApi()];
    for (const { name, text } of made) await expect(text).toMatchFileSnapshot(join(docs, "schemas", name));
    expect(made.map(({ name }) => name)).toEqual(expect.arrayContaining(readdirSync(join(docs, "schemas"))));
  });

  it("has an example of every type in docs/examples/events", () => {
    const names = new Set(examples.map(({ type }) => `${type}.schema.json`));
    expect([...names].sort()).toEqual(
      eventSchemas()
        .map(({ name }) => name)
        .sort(),
    );
  });

  it.each(examples)("accepts the example of $type, also with fields it does not name", (example) => {
    const validate = validatorOf(example.type);
    expect(validate(example), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...example, traceparent: "00-1", data: { ...example.data, new_field: 1 } })).toBe(true);
  });

  it.each(examples)("refuses $type with a part missing or of the wrong type", (example) => {
    const validate = validatorOf(example.type);
    const { data, ...attributes } = example;
    expect(validate(attributes)).toBe(false);
    expect(validate({ ...example, type: "something.else" })).toBe(false);
    expect(validate({ ...example, clientid: "" })).toBe(false);
    const [id = ""] = Object.keys(data);
    expect(validate({ ...example, data: { ...data, [id]: 17 } })).toBe(false);
    expect(validate({ ...example, data: { ...data, [id]: undefined } })).toBe(false);
  });
});
