import {
  envelopeSchema,
  RECORD_KINDS,
  SMS_TRIGGER_TYPE,
  smsTriggerEventSchema,
} from "@conversation-export/domain";
import { z } from "zod";

/** A file name below docs/schemas and its content. */
export type SchemaFile = { readonly name: string; readonly text: string };

/** The events that ingest reads, and the one that export-api writes, in structured mode. */
const events = (): [type: string, event: z.ZodObject][] => [
  ...Object.values(RECORD_KINDS).map(({ type, form }): [string, z.ZodObject] => [
    type,
    envelopeSchema.extend({ type: z.literal(type), data: form.schema }),
  ]),
  [SMS_TRIGGER_TYPE, smsTriggerEventSchema],
];

/** JSON Schema of each event in structured mode, attributes and `data`, by type. */
export const schemasByType = (
  target: "draft-2020-12" | "draft-7",
): [type: string, schema: z.core.JSONSchema.BaseSchema][] =>
  events().map(([type, event]) => [
    type,
    // Free-form objects describe themselves by metadata.
    z.toJSONSchema(event, { target, io: "input", unrepresentable: "any" }),
  ]);

export const fileOf = (name: string, content: object): SchemaFile => ({
  name,
  text: `${JSON.stringify(content, null, 2)}\n`,
});

/** A file for each event with its JSON Schema (draft 2020-12). */
export const eventSchemas = (): SchemaFile[] =>
  schemasByType("draft-2020-12").map(([type, { $schema, ...schema }]) => {
    const name = `${type}.schema.json`;
    return fileOf(name, { $schema, $id: name, title: type, ...schema });
  });
