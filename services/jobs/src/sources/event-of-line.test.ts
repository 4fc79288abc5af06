import { busPositionOf } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { eventOfLine } from "./event-of-line.ts";

const context = { topic: "file:/in/a.ndjson#1", location: "/in/a.ndjson", now: 5000 };
const read = (text: string | Buffer | null) =>
  eventOfLine({ number: 7, bytes: text === null ? null : Buffer.from(text) }, context);
const event = (more: object) => read(JSON.stringify({ type: "message.exported", ...more }));

it("stands for the line, and carries its place on the bus for the version", () => {
  const plain = event({});
  if (!("message" in plain)) throw new Error("not an event");
  expect(plain.type).toBe("message.exported");
  expect(plain.message).toMatchObject({ topic: context.topic, partition: 0, offset: 7, timestamp: 5000 });
  expect(busPositionOf(plain.message)).toEqual({ partition: 0, offset: 7 });

  for (const more of [
    { partition: 3, offset: 12 },
    { partition: "3", offset: "12" },
  ]) {
    const placed = event(more);
    if (!("message" in placed)) throw new Error("not an event");
    expect(placed.message.offset).toBe(7);
    expect(busPositionOf(placed.message)).toEqual({ partition: 3, offset: 12 });
  }
});

it.each([
  [null, "line_too_long"],
  ["{", "invalid_envelope"],
  ["[1]", "invalid_envelope"],
  ["null", "invalid_envelope"],
  [Buffer.from([0x7b, 0xff, 0x7d]), "invalid_envelope"],
  ["{}", "unexpected_type"],
  ['{"type":"other"}', "unexpected_type"],
  ['{"type":"message.exported","partition":1}', "invalid_envelope"],
  ['{"type":"message.exported","partition":65536,"offset":1}', "invalid_envelope"],
  ['{"type":"message.exported","partition":1,"offset":-1}', "invalid_envelope"],
  ['{"type":"message.exported","partition":1,"offset":281474976710656}', "invalid_envelope"],
  ['{"type":"message.exported","partition":1,"offset":1.5}', "invalid_envelope"],
])("refuses %s as %s and names the place, not the content", (text, reason) => {
  const problem = read(text);
  expect(problem).toMatchObject({ place: "/in/a.ndjson:7", reason });
});
