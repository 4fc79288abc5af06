import { type EventType, type ExportRecord, processEvent, rightRowsOf } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { rightInserts } from "./right-inserts.ts";

const recordOf = (type: EventType, data: Record<string, unknown>): ExportRecord => {
  const event = { specversion: "1.0", id: "e", source: "s", type, time: "2026-10-05T00:00:00Z" };
  const text = JSON.stringify({ ...event, clientid: "acme", data });
  const outcome = processEvent({ text, headers: {}, position: { partition: 0, offset: 0 } }, type);
  if (outcome.kind !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome.record;
};

const DATE = "2026-10-04T00:00:00Z";

const insertsOf = (record: ExportRecord): { table: string }[] =>
  [...rightInserts(rightRowsOf(record), 1)].flatMap((batch) => [...batch.inserts(0, batch.records.length)]);

it("inserts the date and the change of a record before each of its rows", () => {
  const handoffs = [{ id: "h", date_created: DATE }];
  const conversation = recordOf("conversation.exported", { _id: "c", date_created: DATE, handoffs });
  expect(insertsOf(conversation).map(({ table }) => table)).toEqual([
    "record_dates",
    "changes",
    "handoffs",
    "record_dates",
    "changes",
    "conversation_updates",
    "conversations",
  ]);
  const message = recordOf("message.exported", { _id: "m", conversation_id: "c", date_created: DATE });
  expect(insertsOf(message).map(({ table }) => table)).toEqual(["record_dates", "changes", "messages"]);
});
