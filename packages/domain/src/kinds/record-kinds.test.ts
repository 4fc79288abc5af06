import { describe, expect, it } from "vitest";
import {
  DATED_KINDS,
  EVENT_TYPES,
  LEGACY_FIELDS,
  LIST_NAMES,
  LIST_SCOPES,
  listsByTopic,
  OWN_TABLE_OF,
  PERSON_KINDS,
  READABLE_FIRST,
  RECORD_TABLES,
  TABLES_OF,
  typesByTopic,
  UNDATED_KINDS,
} from "./record-kinds.ts";

const TOPICS = { conversations: "c", messages: "m", end_users: "u" };

describe("the kinds of records", () => {
  it("name their types and lists in one order", () => {
    expect(EVENT_TYPES).toEqual(["conversation.exported", "message.exported", "end_user.exported"]);
    expect(LIST_NAMES).toEqual(["conversations", "messages", "end_users"]);
  });

  it("say which scopes open their lists, and which lists have legacy versions", () => {
    expect(LIST_SCOPES).toEqual(["export", "end_users"]);
    expect(Object.keys(LEGACY_FIELDS)).toEqual(["conversations", "messages"]);
  });

  it("say which have a date in their key, and whose ids name persons", () => {
    expect(DATED_KINDS).toEqual(["conversation", "message"]);
    expect(UNDATED_KINDS).toEqual(["end_user"]);
    expect(PERSON_KINDS).toEqual([{ kind: "end_user", idNames: "end_user_id" }]);
  });

  it("say for each topic what it carries and which list it fills", () => {
    expect([...typesByTopic(TOPICS)]).toEqual([
      ["c", "conversation.exported"],
      ["m", "message.exported"],
      ["u", "end_user.exported"],
    ]);
    expect([...listsByTopic(TOPICS)].map(([topic]) => topic)).toEqual(["c", "m", "u"]);
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
