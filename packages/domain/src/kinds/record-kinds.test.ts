import { describe, expect, it } from "vitest";
import {
  EVENT_TYPES,
  LIST_NAMES,
  listsByTopic,
  OWN_TABLE_OF,
  READABLE_FIRST,
  RECORD_TABLES,
  TABLES_OF,
  topicsByType,
  typesByTopic,
} from "./record-kinds.ts";

const TOPICS = { conversations: "c", messages: "m", end_users: "u" };

describe("the kinds of records", () => {
  it("name their types and lists in one order", () => {
    expect(EVENT_TYPES).toEqual(["conversation.exported", "message.exported", "end_user.exported"]);
    expect(LIST_NAMES).toEqual(["conversations", "messages", "end_users"]);
  });

  it("say for each topic what it carries and which list it fills", () => {
    expect([...typesByTopic(TOPICS)]).toEqual([
      ["c", "conversation.exported"],
      ["m", "message.exported"],
      ["u", "end_user.exported"],
    ]);
    expect([...listsByTopic(TOPICS)].map(([topic]) => topic)).toEqual(["c", "m", "u"]);
    expect(topicsByType(TOPICS)["end_user.exported"]).toBe("u");
  });

  it("insert the row that makes a version readable last, and remove it first", () => {
    expect(TABLES_OF["conversation.exported"].at(-1)).toBe("conversations");
    expect(OWN_TABLE_OF["conversation.exported"].name).toBe("conversations");
    expect(RECORD_TABLES).toEqual([
      "handoffs",
      "conversation_updates",
      "conversations",
      "messages",
      "end_users",
    ]);
    expect(READABLE_FIRST.map(({ name }) => name)).toEqual([
      "conversations",
      "conversation_updates",
      "handoffs",
      "messages",
      "end_users",
    ]);
  });
});
