import { note } from "../event/noted-names.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import { mergeHandoffs } from "./handoffs.ts";
import {
  CONVERSATION_AFTER_HANDOFFS,
  CONVERSATION_BEFORE_HANDOFFS,
  CONVERSATION_BEFORE_UPLOAD,
  CONVERSATION_FIELDS,
} from "./record-fields.ts";
import type { RecordForm } from "./record-form.ts";
import { RECORD_KINDS } from "./record-kinds.ts";
import { type FieldGroup, fieldGroup } from "./render.ts";
import { type ConversationData, conversationSchema } from "./schemas.ts";

const BEFORE_UPLOAD = fieldGroup(CONVERSATION_BEFORE_UPLOAD, conversationSchema);
const BEFORE_HANDOFFS = fieldGroup(CONVERSATION_BEFORE_HANDOFFS, conversationSchema);
const AFTER_HANDOFFS = fieldGroup(CONVERSATION_AFTER_HANDOFFS, conversationSchema);

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

/** A conversation (specification, section 2.1). */
export const conversationForm: RecordForm<ConversationData, Read> = {
  schema: conversationSchema,
  fields: CONVERSATION_FIELDS,
  reads: READS,
  idOf: ({ _id }) => _id,
  created: { name: "date_created", of: (data) => data.date_created },
  updated: { name: "date_updated", of: (data) => data.date_updated },
  finish(data, draft) {
    const handoffs = mergeHandoffs(data.handoffs);
    if (handoffs === null) return null;
    const dates = {
      date_created: formatTimestamp(draft.dateCreated),
      date_updated: formatTimestamp(draft.dateUpdated),
    };
    const render = (group: FieldGroup): string => draft.render(group, dates);
    const score = data.csat?.["score"];
    const record = {
      type: RECORD_KINDS.conversation.type,
      clientId: draft.clientId,
      id: draft.id,
      dateCreated: draft.dateCreated,
      dateUpdated: draft.dateUpdated,
      version: draft.version,
      beforeUpload: `{${render(BEFORE_UPLOAD)},"record_last_updated":"`,
      afterUpload: `",${render(BEFORE_HANDOFFS)},"handoffs":`,
      tail: `,${render(AFTER_HANDOFFS)}}`,
      handoffs: handoffs.entries,
      columns: {
        chatterId: data.chatter_id ?? "",
        endUserId: data.end_user_id ?? "",
        language: data.language ?? "",
        platform: data.platform ?? "",
        device: data.device ?? "",
        browser: data.browser ?? "",
        resolution: data.automated_resolution_classification ?? "",
        topicLabel: data.generated_topic_label ?? "",
        lastAgentId: data.last_agent_id ?? "",
        isEngaged: data.is_engaged ?? null,
        isEscalated: data.is_escalated ?? null,
        isTestUser: data.is_test_user ?? null,
        agentHandleTime: data.agent_handle_time ?? null,
        botHandleTime: data.bot_handle_time ?? null,
        csatScore: typeof score === "number" ? score : null,
      },
    };
    return { record, nonstandard: nonstandardOf(data, handoffs.nonstandard) };
  },
};
