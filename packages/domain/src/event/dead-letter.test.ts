import { describe, expect, it } from "vitest";
import { arrivalTimeOf } from "./bus-position.ts";
import { deadLetterOf, deadLetterTopic, replayHeaders } from "./dead-letter.ts";

const HEADERS = {
  trace: Buffer.from("t"),
  "dl-reason": Buffer.from("invalid_record"),
  "dl-detail": "_id: expected string",
  "dl-topic": "conversations",
  "dl-partition": "2",
  "dl-offset": "17",
  "dl-key": "YWNtZTox",
  "dl-time": "2026-10-20T09:59:58.500Z",
  "dl-rejected-at": "2026-10-20T10:00:00.000Z",
  "dl-replays": "1",
};

describe("the headers of a dead letter", () => {
  it("say why, whence and how often", () => {
    expect(deadLetterOf(HEADERS)).toEqual({
      reason: "invalid_record",
      detail: "_id: expected string",
      topic: "conversations",
      arrival: { partition: 2, offset: 17 },
      arrivedAt: Date.parse("2026-10-20T09:59:58.5Z"),
      lastOffset: null,
      rejectedAt: Date.parse("2026-10-20T10:00:00Z"),
      replays: 1,
      leftOut: false,
    });
  });

  it.each([
    ["no reason", { "dl-reason": undefined }],
    ["no topic", { "dl-topic": null }],
    ["no place", { "dl-offset": undefined }],
    ["a count that is none", { "dl-replays": "many" }],
    ["two topics", { "dl-topic": ["conversations", "messages"] }],
    ["a reason that is not UTF-8", { "dl-reason": Buffer.from([0xff]) }],
  ])("are none with %s", (_, change) => {
    expect(deadLetterOf({ ...HEADERS, ...change })).toBeUndefined();
  });

  it("may lack what is only good to know", () => {
    const some = { ...HEADERS, "dl-time": "", "dl-rejected-at": "never", "dl-detail": undefined };
    expect(deadLetterOf({ ...some, "dl-replays": undefined })).toMatchObject({
      detail: "",
      arrivedAt: null,
      rejectedAt: null,
      replays: 0,
    });
  });

  it.each([
    ["2026-10-20T09:59:58.500Z", Date.parse("2026-10-20T09:59:58.5Z")],
    // No time; a producer's wrong clock.
    [new Date(-1).toISOString(), -1],
    [new Date(8.64e15).toISOString(), 8.64e15],
    ["5", null],
    ["Nov 5", null],
    ["2026-02-30T00:00:00Z", null],
    [["2026-10-20T09:59:58.500Z", "2026-10-20T09:59:58.500Z"], null],
  ])("take %s for the instant %s", (text, instant) => {
    const headers = { ...HEADERS, "dl-time": text, "dl-rejected-at": text };
    expect(deadLetterOf(headers)).toMatchObject({ arrivedAt: instant, rejectedAt: instant });
    const message = { topic: "conversations", partition: 0, offset: 0, timestamp: 7, headers };
    expect(arrivalTimeOf(message)).toBe(instant);
  });

  it.each([
    ["unreadable_batch", "29", 29],
    ["unreadable_batch", "many", null],
    ["invalid_record", "29", null],
  ])("name the end of a batch: %s, %s", (reason, last, lastOffset) => {
    const headers = { ...HEADERS, "dl-reason": reason, "dl-last-offset": last };
    expect(deadLetterOf(headers)).toMatchObject({ lastOffset });
  });

  it("say that the payload was left out", () => {
    expect(deadLetterOf({ ...HEADERS, "dl-payload": "left out" })).toMatchObject({ leftOut: true });
  });
});

it("a dead letter goes back with all its headers and one replay more", () => {
  expect(replayHeaders(HEADERS, { replays: 1 })).toEqual({ ...HEADERS, "dl-replays": "2" });
});

it("the dead letters of a topic have a topic of their own", () => {
  expect(deadLetterTopic("messages")).toBe("messages.dead-letter");
});
