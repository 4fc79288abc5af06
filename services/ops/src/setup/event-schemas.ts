import {
  envelopeSchema,
  RECORD_KINDS,
  SMS_TRIGGER_TYPE,
  smsTriggerEventSchema,
} from "@conversation-export/domain";
import { z } from "zod";

/** A file name below docs/schemas and its content. */
export type SchemaFile = { readonly name: string; readonly text: string };

/** The events that ingest reads, and the one that export-api writes. */
const events = (): [type: string, event: z.ZodObject][] => [
  ...Object.values(RECORD_KINDS).map(({ type, schema }): [string, z.ZodObject] => [
    type,
    envelopeSchema.extend({ type: z.literal(type), data: schema }),
  ]),
  [SMS_TRIGGER_TYPE, smsTriggerEventSchema],
];

/** JSON Schema (draft 2020-12) of each event in structured mode: attributes and `data`. */
export const eventSchemas = (): SchemaFile[] =>
  events().map(([type, event]) => {
    const { $schema, ...schema } = z.toJSONSchema(event, {
      target: "draft-2020-12",
      io: "input",
      // Free-form objects describe themselves by metadata.
      unrepresentable: "any",
    });
    const named = { $schema, $id: `${type}.schema.json`, title: type, ...schema };
    return { name: `${type}.schema.json`, text: `${JSON.stringify(named, null, 2)}\n` };
  });
