/**
 * The fields of each exported record, in the order of the specification (sections 2.1, 2.2, 2.5).
 * The kind says what leaves when a field is null or absent: a value as null,
 * a list or items as [], an object or members as {}; free-form csat and message_data leave as given, so they
 * are values. Items (a list of objects) and members (one object) have fields of their own, all others are left out.
 */
export type FieldKind = "value" | "list" | "object" | "date" | "items" | "members";
export type Field =
  | readonly [name: string, kind: Exclude<FieldKind, "items" | "members">]
  | readonly [name: string, kind: "items" | "members", fields: readonly Field[]];

const CLASSIFICATION: readonly Field[] = [
  ["topic_id", "value"],
  ["topic_name", "value"],
  [
    "intents",
    "items",
    [
      ["intent_id", "value"],
      ["intent_name", "value"],
      ["status", "value"],
    ],
  ],
];

const COACHING: readonly Field[] = [
  ["id", "value"],
  ["entity_name", "value"],
  ["coaching_type", "value"],
  ["coaching_instructions", "value"],
  ["coaching_intent", "value"],
];

const ARTICLE: readonly Field[] = [
  ["id", "value"],
  ["name", "value"],
  ["url", "value"],
  ["source", "value"],
];

const HANDOFF: readonly Field[] = [
  ["name", "value"],
  ["handoff_id", "value"],
  ["id", "value"],
  ["date_created", "date"],
  ["outcome_status", "value"],
  ["reason_code", "value"],
  ["reasoning", "value"],
];

const PLAYBOOK: readonly Field[] = [
  ["id", "value"],
  ["name", "value"],
  ["playbook_execution_id", "value"],
  ["outcome_status", "value"],
];

const TOOL: readonly Field[] = [
  ["id", "value"],
  ["tool_id", "value"],
  ["connection_id", "value"],
  ["connection_name", "value"],
  ["tool_name", "value"],
  ["outcome_status", "value"],
];

const PROFILE: readonly Field[] = [
  ["first_name", "value"],
  ["last_name", "value"],
  ["display_name", "value"],
  ["avatar", "value"],
  ["email", "value"],
  ["language", "value"],
  ["metadata", "object"],
  ["system_properties", "object"],
];

export const CONVERSATION_BEFORE_UPLOAD: readonly Field[] = [
  ["_id", "value"],
  ["agent_id", "list"],
  ["agent_name", "list"],
  ["agent_handle_time", "value"],
  ["bot_handle_time", "value"],
  ["automated_resolution_classification", "value"],
  ["automated_resolution_classification_reason", "value"],
  ["browser", "value"],
  ["browser_version", "value"],
  ["changeset_id", "value"],
  ["chatter_id", "value"],
  ["classifications", "items", CLASSIFICATION],
  ["csat", "value"],
  ["date_created", "date"],
  ["date_updated", "date"],
  ["device", "value"],
  ["end_user_id", "value"],
  ["generated_topic_id", "value"],
  ["generated_topic_label", "value"],
  ["generated_topic_v2_id", "value"],
  ["generated_topic_v2_title", "value"],
  ["generated_topic_v2_desc", "value"],
  ["generated_topic_v2_parent_id", "value"],
  ["inquiry_summary", "value"],
  ["is_engaged", "value"],
  ["is_escalated", "value"],
  ["is_test_user", "value"],
  ["language", "value"],
  ["last_agent_id", "value"],
  ["last_agent_name", "value"],
  ["metavariables", "object"],
  ["oauth_channel", "value"],
  ["platform", "value"],
];

export const CONVERSATION_BEFORE_HANDOFFS: readonly Field[] = [
  ["used_coaching", "items", COACHING],
  ["used_articles", "items", ARTICLE],
];

export const CONVERSATION_AFTER_HANDOFFS: readonly Field[] = [
  ["used_playbooks", "items", PLAYBOOK],
  ["used_mcp", "items", TOOL],
  ["variables", "object"],
];

export const MESSAGE_BEFORE_UPLOAD: readonly Field[] = [
  ["_id", "value"],
  ["answer_id", "value"],
  ["answer_title", "value"],
  ["chatter_id", "value"],
  ["conversation_id", "value"],
  ["date_created", "date"],
  ["link_was_clicked", "value"],
  ["message_data", "value"],
  ["recipient", "value"],
];

export const MESSAGE_AFTER_UPLOAD: readonly Field[] = [
  ["review", "value"],
  ["sender", "value"],
  ["in_response_to", "value"],
];

export const END_USER_FIELDS: readonly Field[] = [
  ["end_user_id", "value"],
  ["profile", "members", PROFILE],
  ["created_at", "date"],
  ["updated_at", "date"],
];

const UPLOAD: Field = ["record_last_updated", "date"];

/** All fields that may be sent, `record_last_updated` among them, though it is set here. */
export const CONVERSATION_FIELDS: readonly Field[] = [
  ...CONVERSATION_BEFORE_UPLOAD,
  UPLOAD,
  ...CONVERSATION_BEFORE_HANDOFFS,
  ["handoffs", "items", HANDOFF],
  ...CONVERSATION_AFTER_HANDOFFS,
];

export const MESSAGE_FIELDS: readonly Field[] = [...MESSAGE_BEFORE_UPLOAD, UPLOAD, ...MESSAGE_AFTER_UPLOAD];
