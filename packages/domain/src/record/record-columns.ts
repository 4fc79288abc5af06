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
export type Column = { readonly name: string; readonly type: ColumnType };

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

export const columnsOf = (schema: z.ZodObject): readonly Column[] =>
  Object.entries(schema.shape).map(([name, field]) => ({ name, type: typeOf(field) }));
