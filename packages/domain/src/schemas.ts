import { z } from "zod";

// Every field but the identifying ones may be null or absent: the documented example data is not consistent,
// and refusing a record for a missing label would lose it.
const text = z.string().nullish();
const number = z.number().nullish();
const flag = z.boolean().nullish();
const date = z.string().nullish();
function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Not z.record, which would walk and copy what is only to be kept as it came.
const object = z.custom<Record<string, unknown>>(isObject, "expected an object").meta({ type: "object" });
const freeForm = object.nullish();
const listOf = <Item extends z.ZodObject>(item: Item) => z.array(item).nullish();

// Ids stand in keys, links and cursors: bounded, and without halves of surrogate pairs, which have no UTF-8.
const identifier = z
  .string()
  .min(1)
  .max(1_000)
  .refine((id) => id.isWellFormed(), "holds half a surrogate pair");

export const REASON_CODES = [
  "tool_failed",
  "end_user_requested",
  "out_of_scope",
  "tool_unavailable",
  "knowledge_unavailable",
  "issue_unresolved",
  "handoff_configured",
  "other",
  "system_failed",
  "unclassified",
] as const;

/** An attempt to hand a conversation over; `reason_code` outside `REASON_CODES` is kept and counted. */
export const handoffSchema = z.object({
  name: text,
  handoff_id: identifier.nullish(),
  id: identifier,
  date_created: z.string().describe("Time the handoff was invoked"),
  outcome_status: text,
  reason_code: text,
  reasoning: text,
});

const intentSchema = z.object({ intent_id: text, intent_name: text, status: text });

const classificationSchema = z.object({ topic_id: text, topic_name: text, intents: listOf(intentSchema) });

const coachingSchema = z.object({
  id: text,
  entity_name: text,
  coaching_type: text,
  coaching_instructions: text,
  coaching_intent: text,
});

const articleSchema = z.object({ id: text, name: text, url: text, source: text });

const playbookSchema = z.object({ id: text, name: text, playbook_execution_id: text, outcome_status: text });

const toolSchema = z.object({
  id: text,
  tool_id: text,
  connection_id: text,
  connection_name: text,
  tool_name: text,
  outcome_status: text,
});

const profileSchema = z.object({
  first_name: text,
  last_name: text,
  display_name: text,
  avatar: text,
  email: text,
  language: text,
  metadata: freeForm,
  system_properties: freeForm,
});

/** `data` of a `conversation.exported` event (specification, section 2.1). */
export const conversationSchema = z.object({
  _id: identifier,
  agent_id: z.array(z.string().nullable()).nullish(),
  agent_name: z.array(z.string().nullable()).nullish(),
  agent_handle_time: number,
  bot_handle_time: number,
  automated_resolution_classification: text,
  automated_resolution_classification_reason: text,
  browser: text,
  browser_version: text,
  changeset_id: text,
  chatter_id: text,
  classifications: listOf(classificationSchema),
  csat: freeForm,
  date_created: z.string(),
  date_updated: date,
  device: text,
  end_user_id: text,
  generated_topic_id: text,
  generated_topic_label: text,
  generated_topic_v2_id: text,
  generated_topic_v2_title: text,
  generated_topic_v2_desc: text,
  generated_topic_v2_parent_id: text,
  inquiry_summary: text,
  is_engaged: flag,
  is_escalated: flag,
  is_test_user: flag,
  language: text,
  last_agent_id: text,
  last_agent_name: text,
  metavariables: freeForm,
  oauth_channel: text,
  platform: text,
  used_coaching: listOf(coachingSchema),
  used_articles: listOf(articleSchema),
  handoffs: listOf(handoffSchema),
  used_playbooks: listOf(playbookSchema),
  used_mcp: listOf(toolSchema),
  variables: freeForm,
});

/** `data` of a `message.exported` event (specification, sections 2.2 and 2.3). */
export const messageSchema = z.object({
  _id: identifier,
  answer_id: text,
  answer_title: text,
  chatter_id: text,
  conversation_id: identifier,
  date_created: z.string(),
  link_was_clicked: flag,
  message_data: freeForm,
  recipient: text,
  review: z.number().int().nullish(),
  sender: text,
  in_response_to: text,
});

/** `data` of an `end_user.exported` event (specification, section 2.5). */
export const endUserSchema = z.object({
  end_user_id: identifier,
  profile: profileSchema.nullish(),
  created_at: z.string(),
  updated_at: date,
});

export type ConversationData = z.infer<typeof conversationSchema>;
export type MessageData = z.infer<typeof messageSchema>;
export type EndUserData = z.infer<typeof endUserSchema>;
export type HandoffData = z.infer<typeof handoffSchema>;
