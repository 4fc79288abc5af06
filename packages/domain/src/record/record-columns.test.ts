import { describe, expect, it } from "vitest";
import { z } from "zod";
import { RECORD_KINDS, type RecordKind } from "../kinds/record-kinds.ts";
import { columnsOf } from "./record-columns.ts";

const columnsOfKind = (kind: RecordKind) => columnsOf(RECORD_KINDS[kind].public);
const columnOf = (kind: RecordKind, name: string) =>
  columnsOfKind(kind).find((column) => column.name === name)?.type;

describe("columns of records", () => {
  it("need a description of every field, nested ones included", () => {
    const item = z.object({ id: z.string() });
    const schema = z.object({ items: z.array(item).nullable().describe("Items") });
    expect(() => columnsOf(schema)).toThrow("the field id has no description");
  });

  it("are all public fields in their order, each with a description", () => {
    for (const kind of ["conversation", "message", "end_user"] as const) {
      const columns = columnsOfKind(kind);
      expect(columns.map(({ name }) => name)).toEqual(Object.keys(RECORD_KINDS[kind].public.shape));
      expect(columns.filter(({ description }) => description === "")).toEqual([]);
    }
  });

  it("have the type of their schema", () => {
    expect(columnsOfKind("message").map(({ name, type }) => [name, type])).toEqual([
      ["_id", "text"],
      ["answer_id", "text"],
      ["answer_title", "text"],
      ["chatter_id", "text"],
      ["conversation_id", "text"],
      ["date_created", "instant"],
      ["link_was_clicked", "flag"],
      ["message_data", "json"],
      ["recipient", "text"],
      ["record_last_updated", "instant"],
      ["review", "integer"],
      ["sender", "text"],
      ["in_response_to", "text"],
    ]);
    expect(columnOf("conversation", "agent_handle_time")).toBe("number");
    expect(columnOf("conversation", "csat")).toBe("json");
    expect(columnOf("conversation", "variables")).toBe("json");
    expect(columnOf("conversation", "agent_id")).toEqual({ list: "text" });
  });

  it("hold items and members as such", () => {
    const text = (name: string) => ({ name, type: "text" });
    const column = (name: string, type: string): unknown => expect.objectContaining({ name, type });
    const intents = { list: { members: [text("intent_id"), text("intent_name"), text("status")] } };
    expect(columnOf("conversation", "classifications")).toMatchObject({
      list: { members: [text("topic_id"), text("topic_name"), { name: "intents", type: intents }] },
    });
    expect(columnOf("conversation", "handoffs")).toMatchObject({
      list: { members: expect.arrayContaining([column("date_created", "instant")]) as unknown },
    });
    expect(columnOf("end_user", "profile")).toMatchObject({
      members: expect.arrayContaining([column("email", "text"), column("metadata", "json")]) as unknown,
    });
  });
});
