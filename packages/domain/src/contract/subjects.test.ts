import { expect, it } from "vitest";
import type { EventType } from "../kinds/record-kinds.ts";
import { processEvent } from "../event/process-event.ts";
import { subjectsOf } from "./subjects.ts";

const DATE = "2026-10-04T00:00:00Z";

const subjectsIn = (type: EventType, data: Record<string, unknown>): string[] => {
  const event = { specversion: "1.0", id: "e", source: "s", type, time: DATE, clientid: "acme", data };
  const position = { partition: 0, offset: 0 };
  const outcome = processEvent({ text: JSON.stringify(event), headers: {}, position }, type);
  if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
  return subjectsOf(outcome.record);
};

it("names every identifier of a person in a conversation", () => {
  const data = { _id: "c", date_created: DATE };
  expect(subjectsIn("conversation.exported", { ...data, chatter_id: "Ch", end_user_id: "U" })).toEqual([
    "chatter_id:Ch",
    "end_user_id:U",
  ]);
  expect(subjectsIn("conversation.exported", data)).toEqual([]);
});

it("names the chatter of a message, also as its sender or recipient", () => {
  const data = { _id: "m", conversation_id: "c", date_created: DATE };
  expect(
    subjectsIn("message.exported", { ...data, chatter_id: "Ch", sender: "Ch", recipient: "bot" }),
  ).toEqual(["chatter_id:Ch", "chatter_id:bot"]);
  expect(subjectsIn("message.exported", { ...data, chatter_id: null, recipient: "Ch" })).toEqual([
    "chatter_id:Ch",
  ]);
  expect(subjectsIn("message.exported", { ...data, chatter_id: "Ch" })).toEqual(["chatter_id:Ch"]);
  expect(subjectsIn("message.exported", { ...data, chatter_id: null })).toEqual([]);
});

it("names an end user by id and by the address in one form", () => {
  const data = { end_user_id: "U", created_at: DATE };
  expect(
    subjectsIn("end_user.exported", { ...data, profile: { email: " \u00a0\tA.B@Example.COM\u200b\n" } }),
  ).toEqual(["end_user_id:U", "email:a.b@example.com"]);
  expect(subjectsIn("end_user.exported", data)).toEqual(["end_user_id:U"]);
});
