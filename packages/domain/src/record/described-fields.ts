import { z } from "zod";
import { bare } from "./record-fields.ts";

/** `json`: free-form; `texts`: a list; `items`: a list of objects. */
export type FieldType =
  | { readonly kind: "text" | "number" | "flag" | "date" | "json" | "texts" }
  | { readonly kind: "items" | "members"; readonly fields: readonly DescribedField[] };

export type DescribedField = {
  readonly name: string;
  readonly description: string;
  readonly type: FieldType;
};

const typeOf = (given: unknown): FieldType => {
  const schema = bare(given) as z.ZodType;
  if (schema instanceof z.ZodString) {
    return { kind: schema.meta()?.["format"] === "date-time" ? "date" : "text" };
  }
  if (schema instanceof z.ZodNumber) return { kind: "number" };
  if (schema instanceof z.ZodBoolean) return { kind: "flag" };
  if (schema instanceof z.ZodObject) {
    const fields = describedFields(schema);
    return fields.length === 0 ? { kind: "json" } : { kind: "members", fields };
  }
  if (schema instanceof z.ZodArray) {
    const item = bare(schema.element);
    return item instanceof z.ZodObject ? { kind: "items", fields: describedFields(item) } : { kind: "texts" };
  }
  throw new TypeError(`no type for a schema of type ${schema.type}`);
};

const descriptionOf = (schema: z.ZodType): string | undefined =>
  schema.description ??
  (schema instanceof z.ZodOptional ? descriptionOf(schema.unwrap() as z.ZodType) : undefined);

export const describedFields = ({ shape }: z.ZodObject): readonly DescribedField[] =>
  Object.entries(shape as Readonly<Record<string, z.ZodType>>).map(([name, schema]) => {
    const description = descriptionOf(schema);
    if (description === undefined) throw new TypeError(`the field ${name} has no description`);
    return { name, description, type: typeOf(schema) };
  });
