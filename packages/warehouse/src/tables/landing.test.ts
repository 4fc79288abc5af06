import { processEvent } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { createLandingRows, headersOfLanding } from "./landing.ts";

it("converts headers back to headers by name, several of one name to an array", () => {
  const rows: [string, string][] = [
    ["a", "1"],
    ["constructor", "c"],
    ["a", "2"],
    ["empty", ""],
    ["a", "3"],
  ];
  expect(headersOfLanding(rows)).toEqual({ a: ["1", "2", "3"], constructor: "c", empty: "" });
  expect(headersOfLanding([])).toEqual({});
});

it("keeps an event without the id of a schema before it", () => {
  const type = "message.exported";
  const data = { _id: "m", conversation_id: "c", date_created: "2026-10-04T00:00:00Z" };
  const event = { specversion: "1.0", id: "e", source: "s", type, time: "2026-10-05T00:00:00Z", data };
  const text = JSON.stringify({ ...event, clientid: "acme" });
  const place = { partition: 0, offset: 0 };
  const outcome = processEvent({ text, headers: {}, position: place }, type);
  if (outcome.kind !== "accepted") throw new Error(outcome.reason);
  const bytesOf = (value: Buffer): Buffer => {
    const rows = createLandingRows(7, 1024);
    const message = { topic: "messages", ...place, key: null, headers: {}, timestamp: 0 };
    rows.add(outcome.record, { ...message, value });
    return rows.table.row.view(0, rows.table.row.length);
  };
  const alone = Buffer.from(text);
  expect(bytesOf(Buffer.concat([Uint8Array.of(0, 0, 0, 1, 200), alone]))).toEqual(bytesOf(alone));
});
