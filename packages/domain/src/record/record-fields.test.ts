import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  CONVERSATION_AFTER_HANDOFFS,
  CONVERSATION_BEFORE_HANDOFFS,
  CONVERSATION_BEFORE_UPLOAD,
  CONVERSATION_FIELDS,
  END_USER_FIELDS,
  type Field,
  fieldsOf,
  MESSAGE_AFTER_UPLOAD,
  MESSAGE_BEFORE_UPLOAD,
  MESSAGE_FIELDS,
} from "./record-fields.ts";
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

/** The names of fields that are no plain values, by kind and with the path before those of nested fields. */
const special = (fields: readonly Field[], path = ""): string[] =>
  fields.flatMap(([name, kind, inner]) => [
    ...(kind === "value" ? [] : [`${path}${name} ${kind}`]),
    ...special(inner ?? [], `${path}${name}.`),
  ]);

describe("the fields that leave", () => {
  it.each([
    ["conversation", CONVERSATION_FIELDS, conversationSchema],
    ["message", MESSAGE_FIELDS, messageSchema],
    ["end user", END_USER_FIELDS, endUserSchema],
  ])("of a %s are those that its schema checks", (_, fields, schema) => {
    expect(JSON.stringify(named(fields))).toBe(JSON.stringify(namedBy(schema)));
  });

  it("are values but for these", () => {
    expect(special(CONVERSATION_FIELDS)).toEqual([
      "agent_id list",
      "agent_name list",
      "classifications items",
      "classifications.intents items",
      "date_created date",
      "date_updated date",
      "metavariables object",
      "record_last_updated date",
      "used_coaching items",
      "used_articles items",
      "handoffs items",
      "handoffs.date_created date",
      "used_playbooks items",
      "used_mcp items",
      "variables object",
    ]);
    expect(special(MESSAGE_FIELDS)).toEqual([
      "date_created date",
      "record_last_updated date",
      "review integer",
    ]);
    expect(special(END_USER_FIELDS)).toEqual([
      "profile members",
      "profile.metadata object",
      "profile.system_properties object",
      "created_at date",
      "updated_at date",
    ]);
  });

  it("lie in pieces around the instant of upload and the handoffs", () => {
    const ends = (fields: readonly Field[]) => [fields.at(0)?.[0], fields.at(-1)?.[0]];
    expect(ends(CONVERSATION_BEFORE_UPLOAD)).toEqual(["_id", "platform"]);
    expect(ends(CONVERSATION_BEFORE_HANDOFFS)).toEqual(["used_coaching", "used_articles"]);
    expect(ends(CONVERSATION_AFTER_HANDOFFS)).toEqual(["used_playbooks", "variables"]);
    expect(ends(MESSAGE_BEFORE_UPLOAD)).toEqual(["_id", "recipient"]);
    expect(ends(MESSAGE_AFTER_UPLOAD)).toEqual(["review", "in_response_to"]);
  });

  it("follow a schema that gains a field", () => {
    const schema = z.object({ id: z.string(), tags: z.array(z.string()).nullish().describe("Tags") });
    expect(fieldsOf(schema)).toEqual([
      ["id", "value"],
      ["tags", "list"],
    ]);
  });
});
