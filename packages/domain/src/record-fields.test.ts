import { describe, expect, it } from "vitest";
import { z } from "zod";
import { CONVERSATION_FIELDS, END_USER_FIELDS, type Field, MESSAGE_FIELDS } from "./record-fields.ts";
import { conversationSchema, endUserSchema, messageSchema } from "./schemas.ts";

type Named = { readonly [name: string]: Named | null };

function named(fields: readonly Field[]): Named {
  const known = fields.filter(([name]) => name !== "record_last_updated");
  return Object.fromEntries(
    known.map(([name, , inner]) => [name, inner === undefined ? null : named(inner)]),
  );
}

/** The fields of an object, or of the items of a list, that a schema names. */
function namedBy(schema: unknown): Named | null {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return namedBy(schema.unwrap());
  if (schema instanceof z.ZodArray) return namedBy(schema.element);
  if (!(schema instanceof z.ZodObject)) return null;
  return Object.fromEntries(Object.entries(schema.shape).map(([name, inner]) => [name, namedBy(inner)]));
}

describe("the fields that leave", () => {
  it.each([
    ["conversation", CONVERSATION_FIELDS, conversationSchema],
    ["message", MESSAGE_FIELDS, messageSchema],
    ["end user", END_USER_FIELDS, endUserSchema],
  ])("of a %s are those that its schema checks", (_, fields, schema) => {
    expect(JSON.stringify(named(fields))).toBe(JSON.stringify(namedBy(schema)));
  });
});
