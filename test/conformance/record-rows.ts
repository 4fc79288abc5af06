/** A field, a value that passes unchanged, and what null or missing becomes; undefined: required. */
export type FieldRow = readonly [name: string, value: unknown, empty: unknown];

export const DATE_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/;

export const CREATED = "2026-10-05T12:00:00.123456+00:00";

/** Section 2.1; `ITEM_ROWS` has nested items, the service sets `record_last_updated`. */
export const CONVERSATION_ROWS: readonly FieldRow[] = [
  ["_id", "full", undefined],
  ["agent_id", ["agent-17", "agent-18"], []],
  ["agent_name", ["Ida", "Jörg Weiß"], []],
  ["agent_handle_time", 312.5, null],
  ["bot_handle_time", 48, null],
  ["automated_resolution_classification", "Not Resolved", null],
  ["automated_resolution_classification_reason", "The refund needed an agent.", null],
  ["browser", "Firefox", null],
  ["browser_version", "143.0", null],
  ["changeset_id", "baseline", null],
  ["chatter_id", "664f1c2e9b1d8a0012a3b4aa", null],
  ["classifications", [], []],
  [
    "csat",
    {
      comment: "Quick 🙂",
      feedback: "agent was helpful",
      is_positive: true,
      resolved: null,
      score: 4,
      style: "NUMERIC",
      survey_type: "proactive",
      customer_effort_score: 2,
      ces_max: 7,
      net_promoter_score: 9,
    },
    null,
  ],
  ["date_created", CREATED, undefined],
  ["date_updated", "2026-10-06T09:15:40.900000+00:00", CREATED],
  ["device", "Android", null],
  ["end_user_id", "eu-204", null],
  ["generated_topic_id", "gt-9", null],
  ["generated_topic_label", "Refunds", null],
  ["generated_topic_v2_id", "gt2-9", null],
  ["generated_topic_v2_title", "Late refunds", null],
  ["generated_topic_v2_desc", "Refunds that take longer than promised", null],
  ["generated_topic_v2_parent_id", "gt2-1", null],
  ["inquiry_summary", 'Asks "where" the refund is.\nTwice.', null],
  ["is_engaged", true, null],
  ["is_escalated", false, null],
  ["is_test_user", false, null],
  ["language", "pt-BR", null],
  ["last_agent_id", "agent-18", null],
  ["last_agent_name", "Jörg Weiß", null],
  ["metavariables", { plan: "pro", seats: 12, trial: false, nested: { list: [1, null] } }, {}],
  ["oauth_channel", "shop", null],
  ["platform", "web", null],
  ["used_coaching", [], []],
  ["used_articles", [], []],
  ["handoffs", [], []],
  ["used_playbooks", [], []],
  ["used_mcp", [], []],
  ["variables", { order_number: "A-1", empty: null }, {}],
];

/** Nested items of section 2.1. */
export const ITEM_ROWS: Readonly<Record<string, readonly FieldRow[]>> = {
  classifications: [
    ["topic_id", "t-refunds", null],
    ["topic_name", "Refunds", null],
    ["intents", [{ intent_id: "i-1", intent_name: "Refund status", status: "active" }], []],
  ],
  used_coaching: [
    ["id", "coaching-1", null],
    ["entity_name", "refund", null],
    ["coaching_type", "instruction", null],
    ["coaching_instructions", "Ask for the order number first.", null],
    ["coaching_intent", "Refund not received", null],
  ],
  used_articles: [
    ["id", "a-3", null],
    ["name", "Refund times", null],
    ["url", "https://help.example.com/a-3?x=1&y=%20", null],
    ["source", "help-centre", null],
  ],
  used_playbooks: [
    ["id", "p-1", null],
    ["name", "Refund", null],
    ["playbook_execution_id", "run-1", null],
    ["outcome_status", "succeeded", null],
  ],
  used_mcp: [
    ["id", "call-1", null],
    ["tool_id", "tool-1", null],
    ["connection_id", "connection-1", null],
    ["connection_name", "Shop", null],
    ["tool_name", "find_order", null],
    ["outcome_status", "failed", null],
  ],
  handoffs: [
    ["name", "Live agents", null],
    ["handoff_id", "generated_4711", null],
    ["id", "attempt-1", undefined],
    ["date_created", "2026-10-05T12:01:00.000000+00:00", undefined],
    ["outcome_status", "succeeded", null],
    ["reason_code", "end_user_requested", null],
    ["reasoning", "The chatter asked for [redacted].", null],
  ],
};

export const INTENT_ROWS: readonly FieldRow[] = [
  ["intent_id", "i-1", null],
  ["intent_name", "Refund status", null],
  ["status", "active", null],
];

/** Section 2.2; the service sets `record_last_updated`. */
export const MESSAGE_ROWS: readonly FieldRow[] = [
  ["_id", "full", undefined],
  ["answer_id", "664f1c3a9b1d8a0012a3b777", null],
  ["answer_title", "Refund status", null],
  ["chatter_id", "664f1c2e9b1d8a0012a3b4aa", null],
  ["conversation_id", "conversation-1", undefined],
  ["date_created", CREATED, undefined],
  ["link_was_clicked", true, null],
  ["message_data", { _type: "text", body: "Hello", has_variables: false, reviewable_message: true }, null],
  ["recipient", "664f1c2e9b1d8a0012a3b4aa", null],
  ["review", 5, null],
  ["sender", "bot", null],
  ["in_response_to", "664f1c399b1d8a0012a3b500", null],
];

const UUID = "0b8f5c6e-8f0e-4f57-9f1f-0b6c2f0f7a11";

/** Section 2.3: fields beside `_type`. */
export const MESSAGE_SHAPES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  greeting: { external_chat_id: UUID, reviewable_message: false },
  text: { body: "Hello 🙂", has_variables: true, reviewable_message: true, has_forced_quick_replies: false },
  picture: {
    alt_text: "A box",
    has_variables: false,
    pic_url: "https://cdn.example.com/a.png",
    reviewable_message: false,
  },
  quick_replies: {
    has_variables: false,
    is_forced: true,
    quick_replies: [{ button_type: "quick_reply", label: "Yes", target: "664f1c399b1d8a0012a3b500" }],
    reviewable_message: false,
  },
  trigger: { body: "Start", button_type: "trigger", external_chat_id: UUID, reviewable_message: false },
  meta: {
    meta_message_type: "variable_change",
    meta_message_data: { id: "v-1", name: "order", new_value: "A-1", old_value: null, scope: "local" },
  },
  link: {
    alt_text: "Help centre",
    generate_link_preview: true,
    has_variables: false,
    is_handoff: false,
    link_description: "How refunds work",
    link_icon: "external",
    link_text: "Read more",
    new_window: true,
    raw_url: "https://shop.example.com/{order}",
    reviewable_message: false,
    title: "Refunds",
    url: "https://shop.example.com/A-1",
  },
  web_window: {
    has_forced_quick_replies: false,
    has_variables: true,
    is_handoff: false,
    locked: true,
    raw_url: "https://shop.example.com/form",
    reviewable_message: false,
    window_button_label: "Open form",
    window_height: 500,
    window_title: "Return form",
    window_url: "https://shop.example.com/form?o=A-1",
    window_width: 360,
  },
  csat_shown: { survey_type: "proactive" },
  csat: { is_positive: true, score: 5, style: "NUMERIC", survey_type: "proactive" },
};

/** Section 2.5. */
export const END_USER_ROWS: readonly FieldRow[] = [
  ["end_user_id", "full", undefined],
  ["profile", undefined, {}],
  ["created_at", "2026-03-01T10:00:00.000000+00:00", undefined],
  ["updated_at", "2026-10-06T22:41:07.330000+00:00", "2026-03-01T10:00:00.000000+00:00"],
];

/** Section 2.5. */
export const PROFILE_ROWS: readonly FieldRow[] = [
  ["first_name", "Noor", null],
  ["last_name", "Haddad", null],
  ["display_name", "Noor H.", null],
  ["avatar", "https://cdn.example.com/a/eu-204.png", null],
  ["email", "noor@example.com", null],
  ["language", "en-GB", null],
  ["metadata", { vip: true, orders: 12.5, city: "São Paulo" }, {}],
  ["system_properties", { crm_id: "C-1177" }, {}],
];

export const valuesOf = (rows: readonly FieldRow[]): Record<string, unknown> =>
  Object.fromEntries(rows.map(([name, value]) => [name, value]));

export const nullsOf = (rows: readonly FieldRow[]): Record<string, unknown> =>
  Object.fromEntries(rows.map(([name, value, empty]) => [name, empty === undefined ? value : null]));

export const requiredOf = (rows: readonly FieldRow[]): Record<string, unknown> =>
  Object.fromEntries(rows.filter(([, , empty]) => empty === undefined).map(([name, value]) => [name, value]));
