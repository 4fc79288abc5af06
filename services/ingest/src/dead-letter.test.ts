import type { BusMessage } from "@conversation-export/bus";
import { rejected } from "@conversation-export/domain";
import { describe, expect, it } from "vitest";
import { toDeadLetter } from "./dead-letter.ts";

const NOW = new Date("2026-10-20T10:00:00Z");
const REJECTION = rejected("invalid_record", "_id: expected string");

const message = (change: Partial<BusMessage> = {}): BusMessage => ({
  topic: "conversations",
  partition: 2,
  offset: 17,
  key: Buffer.from("acme:1"),
  value: Buffer.from([0xff, 0x00, 0x7b]),
  headers: {},
  timestamp: Date.parse("2026-10-20T09:59:58.5Z"),
  ...change,
});
const letterOf = (change: Partial<BusMessage> = {}) =>
  toDeadLetter({ source: message(change), rejection: REJECTION }, NOW);

describe("a dead letter", () => {
  it("carries the message untouched, and why and whence", () => {
    const source = message({ headers: { trace: Buffer.from("t"), empty: null, twice: ["a", "b"] } });
    const letter = toDeadLetter({ source, rejection: REJECTION }, NOW);
    expect(letter.key).toBe(source.key);
    expect(letter.value).toBe(source.value);
    expect(letter.headers).toEqual({
      ...source.headers,
      "dl-reason": "invalid_record",
      "dl-detail": "_id: expected string",
      "dl-topic": "conversations",
      "dl-partition": "2",
      "dl-offset": "17",
      "dl-key": Buffer.from("acme:1").toString("base64"),
      "dl-time": "2026-10-20T09:59:58.500Z",
      "dl-rejected-at": "2026-10-20T10:00:00.000Z",
      "dl-replays": "0",
    });
  });

  it("keeps the place and the time of the first arrival when a replay is refused again", () => {
    const first = {
      "dl-partition": "1",
      "dl-offset": "5",
      "dl-time": "2026-10-19T00:00:00.000Z",
      "dl-replays": "2",
    };
    expect(letterOf({ headers: first }).headers).toMatchObject(first);
  });

  it.each([-1, -9e15, 9e15])("can be made of a message from the instant %d", (timestamp) => {
    expect(letterOf({ timestamp }).headers).toMatchObject({ "dl-reason": "invalid_record" });
  });

  it("can be made of a message without a key", () => {
    expect(letterOf({ key: null })).toMatchObject({ key: null, headers: { "dl-key": "" } });
  });
});
