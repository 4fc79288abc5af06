import { z } from "zod";
import { holdsDoubles, isObject } from "../event/json-object.ts";

// Every field but the identifying ones may be absent: the documented example data is inconsistent.
const text = z.string().nullish();
const number = z.number().nullish();
const flag = z.boolean().nullish();

/** How a field leaves where its schema alone does not say: as a date, or as `{}` instead of null. */
export const FIELD_FORMS = z.registry<{ readonly form: "date" | "object" }>();

const instant = z.string().register(FIELD_FORMS, { form: "date" });
const date = instant.nullish();

// z.record would walk and copy values that are only kept as they came.
const anyObject = () =>
  z
    .custom<Record<string, unknown>>(isObject, "is not an object")
    .refine(holdsDoubles, "holds a number beyond a double")
    .meta({ type: "object" });
const freeForm = anyObject().nullish();
const variables = anyObject().register(FIELD_FORMS, { form: "object" }).nullish();
const listOf = <Item extends z.ZodObject>(item: Item) => z.array(item).nullish();

/** Characters of an id of a record or a person. */
export const MAX_ID_LENGTH = 1_000;

/** The schemas of ids. */
export const IDS = z.registry<{ readonly isId: true }>();

const bounded = z
  .string()
  .max(MAX_ID_LENGTH, `must have at most ${MAX_ID_LENGTH} characters`)
  .register(IDS, { isId: true });
// Ids are in keys, links and cursors: bounded, and without halves of surrogate pairs, which have no UTF-8.
const identifierOrEmpty = bounded.refine((id) => id.isWellFormed(), "holds half a surrogate pair");
const identifier = identifierOrEmpty.min(1, "must not be empty");
const personId = bounded.nullish();

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
const handoffSchema = z.object({
  name: text.describe("Name of the handoff"),
  handoff_id: identifierOrEmpty
    .nullish()
    .describe("ID of the handoff: what distinguishes attempts; it need not match a configured one"),
  id: identifier.describe("ID of the attempt; it stays the same in later exports"),
  date_created: instant.describe("Time the handoff was invoked"),
  outcome_status: text.describe("How the attempt ended, such as succeeded or failed"),
  reason_code: text.describe(`What led to the handoff: ${REASON_CODES.join(", ")} or null`),
  reasoning: text.describe("What speaks for the handoff, redacted as the client wishes"),
});

const intentSchema = z.object({
  intent_id: text.describe("ID of the Intent"),
  intent_name: text.describe("Name of the Intent"),
  status: text.describe("Such as active"),
});

const classificationSchema = z.object({
  topic_id: text.describe("ID of the Topic"),
  topic_name: text.describe("Name of the Topic"),
  intents: listOf(intentSchema).describe("Intents of the Topic"),
});

const coachingSchema = z.object({
  id: text.describe("ID of the coaching event"),
  entity_name: text.describe("What was coached"),
  coaching_type: text.describe("Kind of coaching"),
  coaching_instructions: text.describe("What was to be done"),
  coaching_intent: text.describe("The intent it is for"),
});

const articleSchema = z.object({
  id: text.describe("ID of the article"),
  name: text.describe("Title of the article"),
  url: text.describe("Address of the article"),
  source: text.describe("Where the article comes from"),
});

const playbookSchema = z.object({
  id: text.describe("ID of the Playbook"),
  name: text.describe("Name of the Playbook"),
  playbook_execution_id: text.describe("ID of this run"),
  outcome_status: text.describe("How the run ended"),
});

const toolSchema = z.object({
  id: text.describe("ID of the invocation"),
  tool_id: text.describe("ID of the tool; null for invocations from before it was kept"),
  connection_id: text.describe("ID of the connection"),
  connection_name: text.describe("Name of the connection"),
  tool_name: text.describe("Name of the tool"),
  outcome_status: text.describe("How the invocation ended"),
});

const profileSchema = z.object({
  first_name: text.describe("First name"),
  last_name: text.describe("Last name"),
  display_name: text.describe("Name to show"),
  avatar: text.describe("Address of a picture"),
  email: text.describe("E-mail address"),
  language: text.describe("Locale, such as en-US"),
  metadata: variables.describe("Values of the client's own: text, numbers and truth values"),
  system_properties: variables.describe("IDs of the person in other systems"),
});

/** `data` of a `conversation.exported` event (specification, section 2.1). */
export const conversationSchema = z.object({
  _id: identifier.describe("ID of the conversation"),
  agent_id: z.array(z.string().nullable()).nullish().describe("IDs of the human agents who took part"),
  agent_name: z.array(z.string().nullable()).nullish().describe("Their names, in the same order"),
  agent_handle_time: number.describe("Seconds that human agents took"),
  bot_handle_time: number.describe("Seconds that the AI agent took"),
  automated_resolution_classification: text.describe("Resolved or Not Resolved"),
  automated_resolution_classification_reason: text.describe("Why it was classified so"),
  browser: text.describe("Browser of the chatter"),
  browser_version: text.describe("Version of the browser"),
  changeset_id: text.describe(
    "Change set that the conversation ran against; baseline for the published configuration",
  ),
  chatter_id: personId.describe("ID of the chatter"),
  classifications: listOf(classificationSchema).describe("Topics and their Intents"),
  csat: freeForm.describe(
    "Answers of the satisfaction survey. Seen keys: comment, feedback, is_positive, resolved, score, style, survey_type, customer_effort_score, ces_max, net_promoter_score",
  ),
  date_created: instant.describe("When the conversation began"),
  date_updated: date.describe("When it last changed"),
  device: text.describe("Device of the chatter"),
  end_user_id: personId.describe("ID of the end user, whose profile the end users' list has"),
  generated_topic_id: text.describe("ID of the generated topic"),
  generated_topic_label: text.describe("Title of the generated topic"),
  generated_topic_v2_id: text.describe("ID of the generated topic, second generation"),
  generated_topic_v2_title: text.describe("Title of that topic"),
  generated_topic_v2_desc: text.describe("Description of that topic"),
  generated_topic_v2_parent_id: text.describe("ID of the category that holds that topic"),
  inquiry_summary: text.describe("Generated summary of what was asked"),
  is_engaged: flag.describe("Whether the chatter talked with the bot"),
  is_escalated: flag.describe("Whether the chatter was escalated to a human agent"),
  is_test_user: flag.describe("Whether a test user began the conversation"),
  language: text.describe("Language of the chatter"),
  last_agent_id: text.describe("ID of the human agent who handled it last; null when there was none"),
  last_agent_name: text.describe("Name of that agent"),
  metavariables: variables.describe("Metavariables and their values"),
  oauth_channel: text.describe("Channel that OAuth went through"),
  platform: text.describe("Platform that the conversation took place on"),
  used_coaching: listOf(coachingSchema).describe("Coaching that was applied"),
  used_articles: listOf(articleSchema).describe("Articles that were referred to"),
  handoffs: listOf(handoffSchema).describe(
    "The latest attempt of each handoff that the AI agent began, in the order of time; is_escalated says whether one led to an escalation",
  ),
  used_playbooks: listOf(playbookSchema).describe("Playbooks that were run"),
  used_mcp: listOf(toolSchema).describe("MCP tools that were invoked"),
  variables: variables.describe("Variables and their last values"),
});

/** `data` of a `message.exported` event (specification, sections 2.2 and 2.3). */
export const messageSchema = z.object({
  _id: identifier.describe("ID of the message"),
  answer_id: text.describe(
    "ID of the answer that the message came from; null when the bot did not send it, the text None when a generative bot did",
  ),
  answer_title: text.describe("Title of that answer"),
  chatter_id: personId.describe("ID of the chatter"),
  conversation_id: identifier.describe("ID of the conversation that the message belongs to"),
  date_created: instant.describe("When the message was made"),
  link_was_clicked: flag.describe("Whether the link in the answer was followed"),
  message_data: freeForm.describe(
    "Content of the message. Its form depends on `_type`: greeting, text, picture, quick_replies, trigger, meta, link, web_window, csat_shown or csat; the text is in `body`",
  ),
  recipient: personId.describe("ID of the chatter, or a word for the agent, the bot or the platform"),
  review: z.int32().nullish().describe("Rating of the answer by the chatter, 0 to 5"),
  sender: personId.describe("As for recipient"),
  in_response_to: text.describe(
    "ID of the message that this one answers; the text None when it answers none",
  ),
});

/** `data` of an `end_user.exported` event (specification, section 2.5). */
export const endUserSchema = z.object({
  end_user_id: identifier.describe("ID of the end user"),
  profile: profileSchema.nullish().describe("What is known about the person"),
  created_at: instant.describe("When the profile was made"),
  updated_at: date.describe("When it last changed"),
});

export type ConversationData = z.infer<typeof conversationSchema>;
export type MessageData = z.infer<typeof messageSchema>;
export type EndUserData = z.infer<typeof endUserSchema>;
export type HandoffData = z.infer<typeof handoffSchema>;
