import { z } from "zod";
import { bare, type Field } from "./record-fields.ts";

const instant = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/)
  .meta({ format: "date-time" });

const valueSchema = (given: z.ZodType): z.ZodType => {
  const inner = bare(given);
  // Only ids are required.
  if (inner === given) return z.string();
  // Free-form objects leave as they came.
  return (inner instanceof z.ZodCustom ? z.looseObject({}) : (inner as z.ZodType)).nullable();
};

const fieldSchema = (kind: Field[1], given: z.ZodType, fields: readonly Field[] = []): z.ZodType => {
  const inner = bare(given);
  switch (kind) {
    case "value":
    case "integer":
      return valueSchema(given);
    case "date":
      return instant;
    case "object":
      return z.looseObject({});
    case "members":
      return objectSchema(fields, inner).partial();
    case "items":
      return z.array(objectSchema(fields, bare((inner as z.ZodArray).element)));
    case "list":
      return inner as z.ZodArray;
  }
};

const objectSchema = (fields: readonly Field[], given: unknown): z.ZodObject => {
  const { shape } = given as z.ZodObject<Record<string, z.ZodType>>;
  return z.object(
    Object.fromEntries(
      fields.map(([name, kind, inner]) => {
        const field = shape[name];
        if (field === undefined) throw new Error(`no schema for the field ${name}`);
        const schema = fieldSchema(kind, field, inner);
        return [name, field.description === undefined ? schema : schema.describe(field.description)];
      }),
    ),
  );
};

const uploaded = { record_last_updated: z.string().describe("When the record was stored by this service") };

/** Every field is there, never null for lists and variables (specification 2.1, 2.2, 2.5). */
export const publicSchema = (fields: readonly Field[], schema: z.ZodObject): z.ZodObject =>
  objectSchema(fields, schema.extend(uploaded));
