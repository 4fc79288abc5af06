import {
  envelopeSchema,
  RECORD_KINDS,
  SMS_TRIGGER_TYPE,
  smsTriggerEventSchema,
} from "@conversation-export/domain";
import { z } from "zod";

/** Below docs/schemas. */
export type SchemaFile = { readonly name: string; readonly text: string };

const events = (): [type: string, event: z.ZodObject][] => [
  ...Object.values(RECORD_KINDS).map(({ type, form }): [string, z.ZodObject] => [
    type,
    envelopeSchema.extend({ type: z.literal(type), data: form.schema }),
  ]),
  [SMS_TRIGGER_TYPE, smsTriggerEventSchema],
];

/** Structured mode, by type. */
export const schemasByType = (
  target: "draft-2020-12" | "draft-7",
): [type: string, schema: z.core.JSONSchema.BaseSchema][] =>
  events().map(([type, event]) => [
    type,
    // They describe themselves by metadata.
    z.toJSONSchema(event, { target, io: "input", unrepresentable: "any" }),
  ]);

export const fileOf = (name: string, content: object): SchemaFile => ({
  name,
  text: `${JSON.stringify(content, null, 2)}\n`,
});

export const eventSchemas = (): SchemaFile[] =>
  schemasByType("draft-2020-12").map(([type, { $schema, ...schema }]) => {
    const name = `${type}.schema.json`;
    return fileOf(name, { $schema, $id: name, title: type, ...schema });
  });
