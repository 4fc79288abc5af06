import type { DeadLetter } from "@conversation-export/bus";
import { expect, it } from "vitest";
import { deadLetterContent, renderDeadLetter, renderDeadLetters } from "./dead-letter-output.ts";

const deadLetter: DeadLetter = {
  reason: "invalid_record",
  detail: "csat.score",
  topic: "messages",
  arrival: { partition: 2, offset: 40 },
  arrivedAt: Date.parse("2026-11-20T10:00:00Z"),
  rejectedAt: null,
  replays: 1,
  leftOut: false,
  lastOffset: null,
  place: { partition: 0, offset: 12 },
  message: {
    topic: "messages.dead-letter",
    partition: 0,
    offset: 12,
    timestamp: 0,
    key: Buffer.from("acme"),
    value: Buffer.from('{"text":"\u001b[2Jhi"}'),
    headers: { "content-type": Buffer.from("application/json"), "dl-reason": Buffer.from("invalid_record") },
  },
};

it("names a dead letter so that it can be asked for, and lists nothing of what it carries", () => {
  const table = renderDeadLetters([deadLetter]);
  expect(table).toContain("messages/0/12");
  expect(table).not.toContain("hi");
});

it("does not let a payload steer the terminal", () => {
  const shown = renderDeadLetter(deadLetter);
  expect(shown).toContain('{"text":"\\u001b[2Jhi"}');
  expect(shown).toContain("content-type: application/json");
  expect(shown).not.toContain("dl-reason");
});

it("gives a payload that is no text as base64", () => {
  const value = Buffer.from([0xff, 0x00]);
  expect(deadLetterContent({ ...deadLetter, message: { ...deadLetter.message, value } })).toMatchObject({
    payload: "/wA=",
    payload_encoding: "base64",
  });
  expect(deadLetterContent({ ...deadLetter, message: { ...deadLetter.message, value: null } })).toMatchObject(
    {
      payload: null,
    },
  );
});
