import { z } from "zod";
import { bare } from "./record-fields.ts";

/** `integer`: within ±(2^53 − 1); `instant`: UTC; `json`: as text. */
export type ColumnType =
  | "text"
  | "number"
  | "integer"
  | "flag"
  | "instant"
  | "json"
  | { readonly list: ColumnType }
  | { readonly members: readonly Column[] };
export type Column = { readonly name: string; readonly type: ColumnType; readonly description: string };

const typeOf = (given: unknown): ColumnType => {
  const schema = bare(given) as z.ZodType;
  if (schema instanceof z.ZodArray) return { list: typeOf(schema.element) };
  if (schema instanceof z.ZodObject) {
    const members = columnsOf(schema);
    return members.length === 0 ? "json" : { members };
  }
  if (schema instanceof z.ZodBoolean) return "flag";
  if (schema instanceof z.ZodNumber) return schema.isInt ? "integer" : "number";
  if (schema instanceof z.ZodString) return schema.meta()?.["format"] === "date-time" ? "instant" : "text";
  throw new TypeError(`no type of column for ${schema.type}`);
};

const descriptionOf = (schema: z.ZodType): string | undefined =>
  schema.description ??
  (schema instanceof z.ZodOptional ? descriptionOf(schema.unwrap() as z.ZodType) : undefined);

export const columnsOf = ({ shape }: z.ZodObject): readonly Column[] =>
  Object.entries(shape as Readonly<Record<string, z.ZodType>>).map(([name, field]) => {
    const description = descriptionOf(field);
    if (description === undefined) throw new TypeError(`the field ${name} has no description`);
    return { name, type: typeOf(field), description };
  });
