import {
  conversationSchema,
  endUserSchema,
  envelopeSchema,
  type EventType,
  messageSchema,
  SMS_TRIGGER_TYPE,
  smsTriggerEventSchema,
} from "@conversation-export/domain";
import { z } from "zod";

const DATA = {
  "conversation.exported": conversationSchema,
  "message.exported": messageSchema,
  "end_user.exported": endUserSchema,
} as const satisfies Record<EventType, z.ZodObject>;

/** A file name below docs/schemas and its content. */
export type SchemaFile = { readonly name: string; readonly text: string };

/** The events that are read, and the one that is written. */
const events = (): [type: string, event: z.ZodObject][] => [
  ...Object.entries(DATA).map(([type, data]): [string, z.ZodObject] => [
    type,
    envelopeSchema.extend({ type: z.literal(type), data }),
  ]),
  [SMS_TRIGGER_TYPE, smsTriggerEventSchema],
];

/** JSON Schema (draft 2020-12) of each event in structured mode: attributes and `data`. */
export const eventSchemas = (): SchemaFile[] =>
  events().map(([type, event]) => {
    const { $schema, ...schema } = z.toJSONSchema(event, {
      target: "draft-2020-12",
      io: "input",
      // Objects that are kept as they came say of themselves that they are objects.
      unrepresentable: "any",
    });
    const named = { $schema, $id: `${type}.schema.json`, title: type, ...schema };
    return { name: `${type}.schema.json`, text: `${JSON.stringify(named, null, 2)}\n` };
  });
