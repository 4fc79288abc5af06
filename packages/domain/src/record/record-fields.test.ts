import { describe, expect, it } from "vitest";
import { z } from "zod";
import { RECORD_KINDS } from "../kinds/record-kinds.ts";
import { cutBefore, type Field, fieldsOf } from "./record-fields.ts";

const { conversation, message, end_user: endUser } = RECORD_KINDS;

const special = (fields: readonly Field[], path = ""): string[] =>
  fields.flatMap(([name, kind, inner]) => [
    ...(kind === "value" ? [] : [`${path}${name} ${kind}`]),
    ...special(inner ?? [], `${path}${name}.`),
  ]);

describe("the fields that leave", () => {
  it("are values but for these", () => {
    expect(special(conversation.form.fields)).toEqual([
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
    expect(special(message.form.fields)).toEqual([
      "date_created date",
      "record_last_updated date",
      "review integer",
    ]);
    expect(special(endUser.form.fields)).toEqual([
      "profile members",
      "profile.metadata object",
      "profile.system_properties object",
      "created_at date",
      "updated_at date",
    ]);
  });

  it("are cut before a field, which must be there", () => {
    const fields: Field[] = [
      ["a", "value"],
      ["b", "list"],
    ];
    expect(cutBefore(fields, "b")).toEqual([[["a", "value"]], [["b", "list"]]]);
    expect(() => cutBefore(fields, "c")).toThrow("no field c");
  });

  it("follow a schema that gains a field", () => {
    const schema = z.object({ id: z.string(), tags: z.array(z.string()).nullish().describe("Tags") });
    expect(fieldsOf(schema)).toEqual([
      ["id", "value"],
      ["tags", "list"],
    ]);
  });
});
