import { expect, it } from "vitest";
import { z } from "zod";
import { beginPass, NOT_PLAIN } from "./plain-json.ts";
import { plainFields } from "./plain-fields.ts";

const endOf = (schema: z.ZodObject, text: string): number => {
  const pass = beginPass(text);
  if (pass === null) throw new Error("no pass");
  return plainFields(schema).read(pass, 0);
};

it.each([
  ["z.number()", z.number(), ["1", "-1.5", "1e3"], ["1e999"]],
  ["z.number().int()", z.number().int(), ["1", "1e3"], ["1.5", "1e999"]],
  ["z.int()", z.int(), ["1"], ["1.5"]],
] as const)("takes the numbers that %s takes, and no others", (_, schema, good, bad) => {
  const endsOf = (numbers: readonly string[]) =>
    numbers.map((number) => endOf(z.object({ n: schema }), `{"n":${number}}`));
  expect(endsOf(good)).toEqual(good.map((number) => `{"n":${number}}`.length));
  expect(endsOf(bad)).toEqual(bad.map(() => NOT_PLAIN));
});
