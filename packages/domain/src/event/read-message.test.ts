import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type EventMessage, readMessage } from "./read-message.ts";

const NOW = Date.parse("2026-10-20T10:00:00Z");
const LIMITS = { maxTimeAheadMs: 60_000, now: NOW };

const message = (time: string, change: Partial<EventMessage> = {}): EventMessage => ({
  topic: "messages",
  partition: 2,
  offset: 5,
  value: Buffer.from(
    JSON.stringify({
      specversion: "1.0",
      id: "e",
      source: "/test",
      type: "message.exported",
      time,
      clientid: "acme",
      data: { _id: "m", conversation_id: "c", date_created: "2026-10-20T09:00:00Z", sender: "grüß" },
    }),
  ),
  headers: {},
  timestamp: NOW - 60_000,
  ...change,
});
const read = (one: EventMessage) => readMessage(one, "message.exported", LIMITS);

it("gives the record of a message with its place on the bus as the version", () => {
  const outcome = read(message("2026-10-20T09:59:00Z"));
  expect(outcome).toMatchObject({
    kind: "accepted",
    record: { id: "m", version: { partition: 2, offset: 5 } },
  });
  expect(JSON.stringify(outcome)).toContain("grüß");
});

it("refuses a value that is no UTF-8, and ignores a message without one", () => {
  expect(read(message("", { value: Buffer.from([0x7b, 0xff]) }))).toMatchObject({
    kind: "rejected",
    reason: "invalid_envelope",
    detail: "the value is not valid UTF-8",
  });
  expect(read(message("", { value: null }))).toMatchObject({ kind: "ignored", reason: "null_value" });
});

it("does not read over a byte order mark", () => {
  const { value } = message("2026-10-20T09:59:00Z");
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), value ?? Buffer.alloc(0)]);
  expect(read(message("", { value: marked }))).toMatchObject({
    kind: "rejected",
    reason: "invalid_envelope",
  });
});

it("reads what lies behind the id of a schema as if it stood alone", () => {
  const { value: event } = message("2026-10-20T09:59:00Z");
  const values = fc.oneof(
    fc.constant(event ?? new Uint8Array()),
    fc.json().map((text) => Buffer.from(text)),
    fc.uint8Array().filter(([first]) => first !== 0),
  );
  const readText = (value: Uint8Array): string => JSON.stringify(read(message("", { value })));
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4, maxLength: 4 }), values, (id, value) => {
      expect(readText(Buffer.concat([Uint8Array.of(0), id, value]))).toBe(readText(value));
    }),
  );
  expect(readText(Uint8Array.of(0, 0, 0, 1))).toContain("not JSON");
});

it.each([
  ["its arrival", NOW - 60_000, "2026-10-20T10:00:00Z", "2026-10-20T10:00:00.001Z"],
  ["now, when the bus has no time for it", -1, "2026-10-20T10:01:00Z", "2026-10-20T10:01:00.001Z"],
  ["now, when its arrival lies ahead", NOW + 9e6, "2026-10-20T10:01:00Z", "2026-10-20T10:01:00.001Z"],
])("takes an event of up to a minute after %s", (_name, timestamp, latest, tooLate) => {
  expect(read(message(latest, { timestamp })).kind).toBe("accepted");
  expect(read(message(tooLate, { timestamp })).kind).toBe("rejected");
});

it("trusts the broker's time, however slow the clock here is", () => {
  const arrived = NOW + 360_000;
  const of = (time: string, hasBrokerTime: boolean) =>
    read(message(time, { timestamp: arrived, hasBrokerTime }));
  expect(of("2026-10-20T10:06:00Z", true).kind).toBe("accepted");
  expect(of("2026-10-20T10:07:00.001Z", true)).toMatchObject({ reason: "time_in_future" });
  // A publisher's time counts only up to our clock.
  expect(of("2026-10-20T10:06:00Z", false)).toMatchObject({ reason: "time_in_future" });
});

it("names what is wrong with the headers of a replay and with its event", () => {
  const headers = { "dl-partition": ["0", "1"], "dl-offset": Buffer.from([0xff]) };
  expect(read(message("yesterday", { headers }))).toMatchObject({
    reason: "invalid_envelope",
    detail:
      "dl-partition, dl-offset: a header has one value, in valid UTF-8; time is not an ISO 8601 date-time",
  });
});

it("refuses what cannot be read, with its range", () => {
  const unreadable = { lastOffset: 9, why: "cut off" };
  expect(read(message("", { value: null, unreadable }))).toEqual({
    kind: "rejected",
    reason: "unreadable_batch",
    detail: "offsets 5 to 9 cannot be read: cut off",
  });
});

it("keeps no text of a message alive by the ids of its record", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const body = "x".repeat(100_000);
  const idsOf = (number: number): readonly string[] => {
    const id = `an-id-that-is-long-enough-to-be-a-slice-${number}`;
    const data = { _id: id, conversation_id: id, chatter_id: id, message_data: { body } };
    const event = {
      specversion: "1.0",
      id: "e",
      source: "/test",
      type: "message.exported",
      time: "2026-10-20T09:59:00Z",
      clientid: "a-client-of-a-long-name",
      data: { ...data, date_created: "2026-10-20T09:00:00Z" },
    };
    const outcome = read(message("", { value: Buffer.from(JSON.stringify(event)) }));
    if (outcome.kind !== "accepted" || outcome.record.type !== "message.exported") throw new Error("refused");
    const { clientId, conversationId, columns } = outcome.record;
    return [clientId, outcome.record.id, conversationId, String(columns[1])];
  };
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: 300 }, (_, number) => idsOf(number));
  collect();
  // Their texts are 30 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
  expect(kept).toHaveLength(300);
});
