/** Specification section 9; conversations as they were published. */
const MESSAGE_V1 = [
  "_id",
  "answer_title",
  "conversation_id",
  "date_created",
  "message_data",
  "recipient",
  "review",
  "sender",
];
const MESSAGE_V1_1 = [...MESSAGE_V1, "chatter_id"];
const CONVERSATION_V1 = [
  "_id",
  "chatter_id",
  "csat",
  "date_created",
  "date_updated",
  "variables",
  "metavariables",
  "is_engaged",
  "is_escalated",
  "platform",
];

export const LEGACY_FIELDS = {
  messages: {
    v1: MESSAGE_V1,
    "v1.1": MESSAGE_V1_1,
    "v1.2": [...MESSAGE_V1_1, "answer_id", "link_was_clicked"],
  },
  conversations: {
    v1: CONVERSATION_V1,
    "v1.1": CONVERSATION_V1,
    "v1.2": [
      ...CONVERSATION_V1,
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
} as const;
