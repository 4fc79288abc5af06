import { describe, expect, it } from "vitest";
import { z } from "zod";
import { RECORD_KINDS } from "../kinds/record-kinds.ts";
import type { Field } from "./record-fields.ts";
import { fieldGroup, fieldTexts } from "./render.ts";

const DATE = "2026-10-01T00:00:00.123456+00:00";

const rendered = (fields: readonly Field[], data: Record<string, unknown>): unknown => {
  const dates = Object.fromEntries(
    fields.filter(([, kind]) => kind === "date").map(([name]) => [name, DATE]),
  );
  return JSON.parse(
    `{${fieldGroup(fields, z.object({})).fromText(fieldTexts(JSON.stringify(data)), dates)}}`,
  );
};

const RECORDS = [
  ["conversation", RECORD_KINDS.conversation, { _id: "c" }],
  ["message", RECORD_KINDS.message, { _id: "m", conversation_id: "c" }],
  ["end user", RECORD_KINDS.end_user, { end_user_id: "e" }],
] as const;

describe.each(RECORDS)("the public schema of a %s", (_name, { public: schema, form: { fields } }, known) => {
  it("takes what is rendered for a record of which nothing is known", () => {
    const record = rendered(fields, known);
    expect(z.strictObject(schema.shape).parse(record)).toEqual(record);
  });

  it("needs every field", () => {
    for (const [field] of fields) {
      const { [field]: _, ...rest } = rendered(fields, known) as Record<string, unknown>;
      expect(schema.safeParse(rest).success, field).toBe(false);
    }
  });

  it("refuses null where it never leaves", () => {
    const record = rendered(fields, known) as Record<string, unknown>;
    for (const [field, kind] of fields) {
      const nullable = (kind === "value" || kind === "integer") && !(field in known);
      expect(schema.safeParse({ ...record, [field]: null }).success, field).toBe(nullable);
    }
  });
});
