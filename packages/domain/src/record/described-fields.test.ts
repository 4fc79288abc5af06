import { expect, it } from "vitest";
import { RECORD_KINDS } from "../kinds/record-kinds.ts";
import { type DescribedField, describedFields } from "./described-fields.ts";

const CONVERSATION = describedFields(RECORD_KINDS.conversation.public);
const MESSAGE = describedFields(RECORD_KINDS.message.public);
const END_USER = describedFields(RECORD_KINDS.end_user.public);

const kindOf = (fields: readonly DescribedField[], name: string): string | undefined =>
  fields.find((field) => field.name === name)?.type.kind;

it.each([
  [CONVERSATION, "_id", "text"],
  [CONVERSATION, "agent_id", "texts"],
  [CONVERSATION, "agent_handle_time", "number"],
  [CONVERSATION, "is_engaged", "flag"],
  [CONVERSATION, "date_created", "date"],
  [CONVERSATION, "record_last_updated", "date"],
  [CONVERSATION, "csat", "json"],
  [CONVERSATION, "variables", "json"],
  [CONVERSATION, "handoffs", "items"],
  [MESSAGE, "message_data", "json"],
  [MESSAGE, "review", "number"],
  [END_USER, "profile", "members"],
] as const)("%#: %s is of its kind", (fields, name, kind) => {
  expect(kindOf(fields, name)).toBe(kind);
});
