import { createHash } from "node:crypto";
import type { BusMessage, OutgoingMessage, Producer } from "@conversation-export/bus";
import { deadLetterOf, rejected } from "@conversation-export/domain";
import { ServiceError } from "@conversation-export/runtime";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createDeadLetterSink, type DeadLetter, toDeadLetter } from "./dead-letter.ts";
import { createTestMetrics } from "../test-metrics.fixture.ts";
import { createKeepTrying } from "./keep-trying.ts";

afterEach(() => {
  vi.useRealTimers();
});

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
const deadLetterFrom = (change: Partial<BusMessage> = {}) =>
  toDeadLetter({ source: message(change), rejection: REJECTION }, NOW);

describe("a dead letter", () => {
  it("carries the message untouched, and why and whence", () => {
    const source = message({ headers: { trace: Buffer.from("t"), empty: null, twice: ["a", "b"] } });
    const deadLetter = toDeadLetter({ source, rejection: REJECTION }, NOW);
    expect(deadLetter.key).toBe(source.key);
    expect(deadLetter.value).toBe(source.value);
    expect(deadLetter.headers).toEqual({
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
    expect(deadLetterFrom({ headers: first }).headers).toMatchObject(first);
  });

  it.each([-1, -9e15, 9e15])("can be made of a message from the instant %d", (timestamp) => {
    expect(deadLetterFrom({ timestamp }).headers).toMatchObject({ "dl-reason": "invalid_record" });
  });

  it("takes no time from a header with several values", () => {
    const headers = { "dl-time": ["2026-01-01T00:00:00Z", ""] };
    expect(deadLetterFrom({ headers }).headers?.["dl-time"]).toBe(deadLetterFrom({}).headers?.["dl-time"]);
  });

  it.each([
    [["1", "2"], "2"],
    [[Buffer.from("7"), null, "x"], "7"],
    ["x", "0"],
    ["", "0"],
    [null, "0"],
    [Buffer.from([0xff]), "0"],
    ["70000", "65535"],
  ])("counts the replays of %j, whatever doubles headers, so that they end", (replays, count) => {
    const { headers = {} } = deadLetterFrom({ headers: { "dl-replays": replays } });
    expect(headers["dl-replays"]).toBe(count);
    expect(deadLetterOf(headers)?.replays).toBe(Number(count));
  });

  it("can be made of a message without a key", () => {
    expect(deadLetterFrom({ key: null })).toMatchObject({ key: null, headers: { "dl-key": "" } });
  });

  it("names the range of offsets of what cannot be read", () => {
    const unreadable = { lastOffset: 99, why: "cut off" };
    expect(deadLetterFrom({ key: null, value: null, unreadable })).toMatchObject({
      key: null,
      value: null,
      headers: { "dl-offset": "17", "dl-last-offset": "99", "dl-payload": "left out" },
    });
  });
});

const deadLetterAt = (offset: number, value: string): DeadLetter => ({
  source: message({ offset, value: Buffer.from(value), headers: { "x-trace": "t" } }),
  rejection: REJECTION,
});

const startSink = (refusalOf: (message: OutgoingMessage) => string | undefined) => {
  const taken: OutgoingMessage[] = [];
  const producer: Pick<Producer, "send"> = {
    send: (_topic, messages) => {
      const type = messages.map(refusalOf).find((refusal) => refusal !== undefined);
      if (type !== undefined) {
        const cause = Object.assign(new Error(type), { type });
        return Promise.reject(new ServiceError("produce", type, { cause }));
      }
      taken.push(...messages);
      return Promise.resolve();
    },
  };
  const { metrics, log } = createTestMetrics();
  const keepTrying = createKeepTrying({ metrics, log });
  return {
    taken,
    sink: createDeadLetterSink({ producer, keepTrying, metrics, log, now: () => new Date(0) }),
  };
};

const tooLargeAbove = (most: number, size: number): string | undefined =>
  size > most ? "MESSAGE_TOO_LARGE" : undefined;

it.each([
  "TOPIC_AUTHORIZATION_FAILED",
  "SASL_AUTHENTICATION_FAILED",
  "OUT_OF_ORDER_SEQUENCE_NUMBER",
])("keeps payload and headers while Kafka answers %s", async (type) => {
  vi.useFakeTimers();
  const refusals = [type, type, type];
  const { taken, sink } = startSink(() => refusals.shift());
  const sent = sink.send("messages", [deadLetterAt(1, "whole")], new AbortController().signal);
  await vi.advanceTimersByTimeAsync(10_000);
  await sent;
  expect(taken.map(({ value }) => value?.toString())).toEqual(["whole"]);
  expect(taken[0]?.headers).toMatchObject({ "x-trace": "t", "dl-reason": "invalid_record" });
  expect(taken[0]?.headers).not.toHaveProperty("dl-payload");
});

it("leaves a note of a dead letter that its topic never takes, and its neighbours go on", async () => {
  const { taken, sink } = startSink(({ value }) => tooLargeAbove(10, value?.length ?? 0));

  const deadLetters = [deadLetterAt(1, "small"), deadLetterAt(2, "far too large"), deadLetterAt(3, "small")];
  await sink.send("messages", deadLetters, new AbortController().signal);

  expect(taken.map(({ value, headers }) => [headers?.["dl-offset"], value?.toString() ?? null])).toEqual([
    ["1", "small"],
    ["2", null],
    ["3", "small"],
  ]);
  expect(taken[1]?.headers).toMatchObject({ "dl-reason": "invalid_record", "dl-payload": "left out" });
  expect(taken[1]?.headers).not.toHaveProperty("x-trace");
});

it("leaves a note even of a message with a huge key and huge headers, and the lane goes on", async () => {
  const sizeOf = ({ key, value, headers }: OutgoingMessage): number =>
    [key, value, ...Object.keys(headers ?? {}), ...Object.values(headers ?? {}).flat()].reduce<number>(
      (sum, part) => sum + Buffer.byteLength(part ?? ""),
      0,
    );
  const { taken, sink } = startSink((one) => tooLargeAbove(16_000, sizeOf(one)));
  const key = Buffer.alloc(1_000_000, "k");
  const source = message({
    key,
    headers: {
      "x-large": Buffer.alloc(300_000),
      "dl-own": Buffer.alloc(300_000),
      "dl-time": "t".repeat(300_000),
    },
  });
  const rejection = rejected("invalid_record", "d".repeat(300_000));
  await sink.send("conversations", [{ source, rejection }], new AbortController().signal);
  const [note] = taken;
  expect(taken).toHaveLength(1);
  expect(note?.key).toEqual(key.subarray(0, 1024));
  expect(note?.headers).toMatchObject({
    "dl-key": key.subarray(0, 1024).toString("base64"),
    "dl-key-length": "1000000",
    "dl-key-sha256": createHash("sha256").update(key).digest("hex"),
    "dl-payload": "left out",
    "dl-payload-length": "3",
    "dl-payload-sha256": expect.stringMatching(/^[0-9a-f]{64}$/),
    "dl-headers-length": "300015",
    "dl-headers-sha256": expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(String(note?.headers?.["dl-offset"])).toBe("17");
  expect(note?.headers).not.toHaveProperty("dl-own");
});
