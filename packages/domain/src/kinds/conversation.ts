import { z } from "zod";
import { formatTimestamp } from "../event/timestamp.ts";
import { note } from "../record/noted-names.ts";
import { cutBefore, fieldsOf, UPLOAD } from "../record/record-fields.ts";
import { publicSchema } from "../record/public-schemas.ts";
import { type FieldGroup, fieldGroup } from "../record/render.ts";
import {
  date,
  flag,
  freeForm,
  identifier,
  instant,
  listOf,
  number,
  personId,
  text,
  variables,
} from "./field-schemas.ts";
import { handoffSchema, mergeHandoffs } from "./handoffs.ts";
import type { RecordForm } from "./record-form.ts";
import type { KindFacts } from "./record-kind.ts";

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

/** Specification 2.1. */
const schema = z.object({
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

type ConversationData = z.infer<typeof schema>;

// Instant of upload and handoffs are written into a record later.
const [head, rest] = cutBefore(fieldsOf(schema), "used_coaching");
const [betweenUploadAndHandoffs, handoffsAndAfter] = cutBefore(rest, "handoffs");
const FIELDS = [...head, UPLOAD, ...rest];
const BEFORE_UPLOAD = fieldGroup(head, schema);
const BEFORE_HANDOFFS = fieldGroup(betweenUploadAndHandoffs, schema);
const AFTER_HANDOFFS = fieldGroup(handoffsAndAfter.slice(1), schema);

const READS = [
  "_id",
  "date_created",
  "date_updated",
  "handoffs",
  "classifications",
  "csat",
  "chatter_id",
  "end_user_id",
  "language",
  "platform",
  "device",
  "browser",
  "automated_resolution_classification",
  "generated_topic_label",
  "last_agent_id",
  "is_engaged",
  "is_escalated",
  "is_test_user",
  "agent_handle_time",
  "bot_handle_time",
] as const satisfies readonly (keyof ConversationData)[];
type Read = (typeof READS)[number];

const RESOLUTIONS: ReadonlySet<unknown> = new Set(["Resolved", "Not Resolved", null, undefined]);

function nonstandardOf(data: Pick<ConversationData, Read>, ofHandoffs: readonly string[]): readonly string[] {
  const nonstandard: string[] = [];
  if (!RESOLUTIONS.has(data.automated_resolution_classification)) {
    note(nonstandard, "automated_resolution_classification");
  }
  for (const { intents } of data.classifications ?? []) {
    for (const { status } of intents ?? []) {
      if ((status ?? "active") !== "active") note(nonstandard, "classifications.intents.status");
    }
  }
  for (const name of ofHandoffs) note(nonstandard, name);
  return nonstandard;
}

const form: RecordForm<ConversationData, Read> = {
  schema,
  fields: FIELDS,
  reads: READS,
  id: { name: "_id", of: ({ _id }) => _id },
  conversationOf: ({ _id }) => _id,
  created: { name: "date_created", of: (data) => data.date_created },
  updated: { name: "date_updated", of: (data) => data.date_updated },
  columns: [
    { name: "chatter_id", type: "text", of: (data) => data.chatter_id, person: "chatter_id" },
    { name: "end_user_id", type: "text", of: (data) => data.end_user_id, person: "end_user_id" },
    { name: "language", type: "label", of: (data) => data.language },
    { name: "platform", type: "label", of: (data) => data.platform },
    { name: "device", type: "label", of: (data) => data.device },
    { name: "browser", type: "label", of: (data) => data.browser },
    {
      name: "automated_resolution_classification",
      type: "label",
      of: (data) => data.automated_resolution_classification,
    },
    { name: "generated_topic_label", type: "text", of: (data) => data.generated_topic_label },
    { name: "last_agent_id", type: "text", of: (data) => data.last_agent_id },
    { name: "is_engaged", type: "flag", of: (data) => data.is_engaged },
    { name: "is_escalated", type: "flag", of: (data) => data.is_escalated },
    { name: "is_test_user", type: "flag", of: (data) => data.is_test_user },
    { name: "agent_handle_time", type: "number", of: (data) => data.agent_handle_time },
    { name: "bot_handle_time", type: "number", of: (data) => data.bot_handle_time },
    {
      name: "csat_score",
      type: "number",
      of: ({ csat }) => (typeof csat?.["score"] === "number" ? csat["score"] : null),
      comment: "score of csat, when it is a number",
    },
  ],
  finish(data, draft) {
    const handoffs = mergeHandoffs(data.handoffs);
    if (handoffs === null) return null;
    const dates = {
      date_created: formatTimestamp(draft.dateCreated),
      date_updated: formatTimestamp(draft.dateUpdated),
    };
    const render = (group: FieldGroup): string => draft.render(group, dates);
    return {
      beforeUpload: `{${render(BEFORE_UPLOAD)},"record_last_updated":"`,
      afterUpload: `",${render(BEFORE_HANDOFFS)},"handoffs":`,
      handoffs: handoffs.entries,
      tail: `,${render(AFTER_HANDOFFS)}}`,
      nonstandard: nonstandardOf(data, handoffs.nonstandard),
    };
  },
};

const LEGACY_V1 = [
  "_id",
  "chatter_id",
  "csat",
  "date_created",
  "date_updated",
  "is_engaged",
  "is_escalated",
  "metavariables",
  "platform",
  "variables",
] as const;

export const conversation = {
  type: "conversation.exported",
  list: "conversations",
  scope: "export",
  number: 1,
  code: "c",
  tables: [
    {
      name: "handoffs",
      id: "conversation_id",
      keyDate: "conversation_date_created",
      created: "conversation_date_created",
    },
    {
      name: "conversation_updates",
      id: "conversation_id",
      keyDate: "date_updated",
      created: "date_created",
    },
    { name: "conversations", id: "conversation_id", keyDate: "date_created", created: "date_created" },
  ],
  texts: ["head", "tail"],
  idNames: null,
  expiresBy: "dateCreated",
  form,
  public: publicSchema(FIELDS, schema),
  legacy: {
    v1: LEGACY_V1,
    "v1.1": LEGACY_V1,
    "v1.2": [
      ...LEGACY_V1,
      "agent_id",
      "agent_name",
      "browser",
      "browser_version",
      "device",
      "is_test_user",
      "language",
      "oauth_channel",
    ],
  },
} as const satisfies KindFacts;
