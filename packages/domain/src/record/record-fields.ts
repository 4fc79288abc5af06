import { z } from "zod";
import { FIELD_FORMS } from "../kinds/field-schemas.ts";

/** Null leaves as [] (list, items), {} (object, members) or null; items and members drop unknown fields. */
export type FieldKind = "value" | "integer" | "list" | "object" | "date" | "items" | "members";
export type Field =
  | readonly [name: string, kind: Exclude<FieldKind, "items" | "members">]
  | readonly [name: string, kind: "items" | "members", fields: readonly Field[]];

export const bare = (schema: unknown): unknown =>
  schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? bare(schema.unwrap()) : schema;

const fieldOf = (name: string, given: unknown): Field => {
  const schema = bare(given) as z.ZodType;
  if (schema instanceof z.ZodObject) return [name, "members", fieldsOf(schema)];
  if (schema instanceof z.ZodArray) {
    const item = bare(schema.element);
    return item instanceof z.ZodObject ? [name, "items", fieldsOf(item)] : [name, "list"];
  }
  if (schema instanceof z.ZodNumber && schema.isInt) return [name, "integer"];
  return [name, FIELD_FORMS.get(schema)?.form ?? "value"];
};

export const fieldsOf = (schema: z.ZodObject): readonly Field[] =>
  Object.entries(schema.shape).map(([name, field]) => fieldOf(name, field));

/** @throws TypeError when no field has this name */
export const cutBefore = (
  fields: readonly Field[],
  name: string,
): [before: readonly Field[], from: readonly Field[]] => {
  const at = fields.findIndex(([field]) => field === name);
  if (at === -1) throw new TypeError(`no field ${name}`);
  return [fields.slice(0, at), fields.slice(at)];
};

export const UPLOAD: Field = ["record_last_updated", "date"];
