/** Decides the value exported for null or absent. */
export type FieldKind =
  | "text"
  | "number"
  | "integer"
  | "flag"
  | "texts"
  | "objects"
  | "members"
  | "given"
  | "object"
  | "id"
  | "created"
  | "updated"
  | "uploaded"
  | "handoffs";

export type Field = readonly [name: string, kind: FieldKind, fields?: readonly Field[]];

function texts(...names: string[]): Field[] {
  return names.map((name) => [name, "text"]);
}

const INTENT = texts("intent_id", "intent_name", "status");
const CLASSIFICATION: readonly Field[] = [...texts("topic_id", "topic_name"), ["intents", "objects", INTENT]];
const COACHING = texts("id", "entity_name", "coaching_type", "coaching_instructions", "coaching_intent");
const ARTICLE = texts("id", "name", "url", "source");
const PLAYBOOK = texts("id", "name", "playbook_execution_id", "outcome_status");
const TOOL = texts("id", "tool_id", "connection_id", "connection_name", "tool_name", "outcome_status");

/** The specification's tables. */
export const CONVERSATION: readonly Field[] = [
  ["_id", "id"],
  ["agent_id", "texts"],
  ["agent_name", "texts"],
  ["agent_handle_time", "number"],
  ["bot_handle_time", "number"],
  ["automated_resolution_classification", "text"],
  ["automated_resolution_classification_reason", "text"],
  ["browser", "text"],
  ["browser_version", "text"],
  ["changeset_id", "text"],
  ["chatter_id", "text"],
  ["classifications", "objects", CLASSIFICATION],
  ["csat", "given"],
  ["date_created", "created"],
  ["date_updated", "updated"],
  ["device", "text"],
  ["end_user_id", "text"],
  ["generated_topic_id", "text"],
  ["generated_topic_label", "text"],
  ["generated_topic_v2_id", "text"],
  ["generated_topic_v2_title", "text"],
  ["generated_topic_v2_desc", "text"],
  ["generated_topic_v2_parent_id", "text"],
  ["inquiry_summary", "text"],
  ["is_engaged", "flag"],
  ["is_escalated", "flag"],
  ["is_test_user", "flag"],
  ["language", "text"],
  ["last_agent_id", "text"],
  ["last_agent_name", "text"],
  ["metavariables", "object"],
  ["oauth_channel", "text"],
  ["platform", "text"],
  ["record_last_updated", "uploaded"],
  ["used_coaching", "objects", COACHING],
  ["used_articles", "objects", ARTICLE],
  ["handoffs", "handoffs"],
  ["used_playbooks", "objects", PLAYBOOK],
  ["used_mcp", "objects", TOOL],
  ["variables", "object"],
];

export const MESSAGE: readonly Field[] = [
  ["_id", "id"],
  ["answer_id", "text"],
  ["answer_title", "text"],
  ["chatter_id", "text"],
  ["conversation_id", "id"],
  ["date_created", "created"],
  ["link_was_clicked", "flag"],
  ["message_data", "given"],
  ["recipient", "text"],
  ["record_last_updated", "uploaded"],
  ["review", "integer"],
  ["sender", "text"],
  ["in_response_to", "text"],
];

export const PROFILE: readonly Field[] = [
  ...texts("first_name", "last_name", "display_name", "avatar", "email", "language"),
  ["metadata", "object"],
  ["system_properties", "object"],
];

export const END_USER: readonly Field[] = [
  ["end_user_id", "id"],
  ["profile", "members", PROFILE],
  ["created_at", "created"],
  ["updated_at", "updated"],
];

export const HANDOFF: readonly Field[] = [
  ["name", "text"],
  ["handoff_id", "text"],
  ["id", "id"],
  ["date_created", "created"],
  ["outcome_status", "text"],
  ["reason_code", "text"],
  ["reasoning", "text"],
];
