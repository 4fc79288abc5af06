import { expect, it } from "vitest";
import {
  CONVERSATION_DESCRIBED,
  type DescribedField,
  END_USER_DESCRIBED,
  MESSAGE_DESCRIBED,
} from "./described-fields.ts";

const kindOf = (fields: readonly DescribedField[], name: string): string | undefined =>
  fields.find((field) => field.name === name)?.type.kind;

it.each([
  [CONVERSATION_DESCRIBED, "_id", "text"],
  [CONVERSATION_DESCRIBED, "agent_id", "texts"],
  [CONVERSATION_DESCRIBED, "agent_handle_time", "number"],
  [CONVERSATION_DESCRIBED, "is_engaged", "flag"],
  [CONVERSATION_DESCRIBED, "date_created", "date"],
  [CONVERSATION_DESCRIBED, "record_last_updated", "date"],
  [CONVERSATION_DESCRIBED, "csat", "json"],
  [CONVERSATION_DESCRIBED, "variables", "json"],
  [CONVERSATION_DESCRIBED, "handoffs", "items"],
  [MESSAGE_DESCRIBED, "message_data", "json"],
  [MESSAGE_DESCRIBED, "review", "number"],
  [END_USER_DESCRIBED, "profile", "members"],
] as const)("%#: %s is of its kind", (fields, name, kind) => {
  expect(kindOf(fields, name)).toBe(kind);
});
