/** The record of docs/examples/events/conversation-structured.txt. */
export const CONVERSATION = {
  _id: "664f1c2e9b1d8a0012a3b4c5",
  agent_id: ["agent-17"],
  agent_name: ["Ida"],
  agent_handle_time: 312.5,
  bot_handle_time: 48,
  automated_resolution_classification: "Not Resolved",
  automated_resolution_classification_reason: "The refund needed an agent.",
  browser: "Firefox",
  browser_version: "143.0",
  changeset_id: "baseline",
  chatter_id: "664f1c2e9b1d8a0012a3b4aa",
  classifications: [
    {
      topic_id: "t-refunds",
      topic_name: "Refunds",
      intents: [{ intent_id: "i-1", intent_name: "Refund status", status: "active" }],
    },
  ],
  csat: { score: 4, is_positive: true, survey_type: "proactive", style: "NUMERIC" },
  date_created: "2026-10-20T09:02:11.004500+00:00",
  date_updated: "2026-10-20T09:15:40.900000+00:00",
  device: "Android",
  end_user_id: "eu-204",
  generated_topic_id: "gt-9",
  generated_topic_label: "Refunds",
  generated_topic_v2_id: "gt2-9",
  generated_topic_v2_title: "Late refunds",
  generated_topic_v2_desc: "Refunds that have not arrived in time",
  generated_topic_v2_parent_id: "gt2-1",
  inquiry_summary: "Asks where the refund is.",
  is_engaged: true,
  is_escalated: true,
  is_test_user: false,
  language: "en",
  last_agent_id: "agent-17",
  last_agent_name: "Ida",
  metavariables: { plan: "pro" },
  oauth_channel: "web",
  platform: "web",
  record_last_updated: "2026-10-20T09:15:43.281907+00:00",
  used_coaching: [
    {
      id: "co-8",
      entity_name: "Refund times",
      coaching_type: "article",
      coaching_instructions: "Name the day on which the bank will have the money.",
      coaching_intent: "Refund status",
    },
  ],
  used_articles: [
    { id: "a-3", name: "Refund times", url: "https://help.example.com/a/3", source: "help-centre" },
  ],
  handoffs: [
    {
      name: "Live agents",
      handoff_id: "h-live",
      id: "attempt-1",
      date_created: "2026-10-20T09:05:00.250000+00:00",
      outcome_status: "succeeded",
      reason_code: "end_user_requested",
      reasoning: "The customer asked for a person.",
    },
  ],
  used_playbooks: [
    { id: "p-5", name: "Refund", playbook_execution_id: "run-77", outcome_status: "completed" },
  ],
  used_mcp: [
    {
      id: "call-2",
      tool_id: "tool-4",
      connection_id: "shop",
      connection_name: "Shop",
      tool_name: "find_order",
      outcome_status: "succeeded",
    },
  ],
  variables: { order_number: 4711 },
};

/** The record of docs/examples/events/message-structured.txt. */
export const MESSAGE = {
  _id: "664f1c3a9b1d8a0012a3b501",
  answer_id: "664e02b19b1d8a0012a39f10",
  answer_title: "Refund status",
  chatter_id: "664f1c2e9b1d8a0012a3b4aa",
  conversation_id: "664f1c2e9b1d8a0012a3b4c5",
  date_created: "2026-10-20T09:02:13.418000+00:00",
  link_was_clicked: false,
  message_data: {
    _type: "text",
    body: "Let me look that up for you.",
    has_variables: false,
    reviewable_message: true,
  },
  recipient: "664f1c2e9b1d8a0012a3b4aa",
  record_last_updated: "2026-10-20T09:02:14.730112+00:00",
  review: 5,
  sender: "bot",
  in_response_to: "664f1c399b1d8a0012a3b500",
};

/** The record of docs/examples/events/end-user-structured.txt. */
export const END_USER = {
  end_user_id: "eu-204",
  profile: {
    first_name: "Noor",
    last_name: "Haddad",
    display_name: "Noor H.",
    avatar: "https://cdn.example.com/a/eu-204.png",
    email: "noor@example.com",
    language: "en-GB",
    metadata: { vip: true, orders: 12 },
    system_properties: { crm_id: "C-1177" },
  },
  created_at: "2026-03-01T09:00:00.000000+00:00",
  updated_at: "2026-10-19T20:41:07.330000+00:00",
};

/** A finished request for erasure. */
export const REQUEST = {
  request_id: "5f2d0c1b7a9e4d3c8b6a5f4e3d2c1b0a-0",
  type: "ERASURE",
  status: "completed",
  received_at: "2026-10-20T09:30:00.000000+00:00",
  updated_at: "2026-10-20T09:34:12.000000+00:00",
};
export const DEADLINE = "2026-10-23T09:30:00.000000+00:00";

export const DELETED_AT = "2026-10-20T10:00:00.000000+00:00";
export const WATERMARK = "2026-10-20T10:30:00.000000Z";
/** A cursor as it looks; no service takes it. */
export const CURSOR =
  "q3fW1Yk0nV8mC2tLxZ5dJbQe7RhUoIaPsGvK4y9NwTEyMzQ1Njc4OTBhYmNkZWYwMWMxOjE3NjA5NTYyMDAwMDAwMDA6MTc2MDkyMDAwMDAwMDAwMDo";
