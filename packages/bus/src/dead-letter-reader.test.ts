import { expect, it } from "vitest";
import { createDeadLetterReader, deadLetterFits } from "./dead-letter-reader.ts";
import type { BusMessage } from "./message.ts";

const message = (offset: number, headers: BusMessage["headers"]): BusMessage => ({
  topic: "messages.dead-letter",
  partition: 0,
  offset,
  key: null,
  value: null,
  timestamp: 0,
  headers,
});
const headers = {
  "dl-reason": "invalid_record",
  "dl-topic": "messages",
  "dl-partition": "0",
  "dl-offset": "7",
  "dl-rejected-at": "2026-10-20T10:00:00.000Z",
};
const AT = Date.parse("2026-10-20T10:00:00Z");

function setup() {
  const lines = [
    message(0, headers),
    message(1, {}),
    message(2, { ...headers, "dl-topic": "conversations" }),
    message(3, { ...headers, "dl-reason": "empty_value" }),
  ];
  const asked: number[] = [];
  const deadLetters = createDeadLetterReader({
    topics: ["messages"],
    reader: {
      topicId: () => Promise.resolve("id"),
      bounds: () => Promise.resolve([{ partition: 0, start: 1, end: 4 }]),
      offsetsAt: (topic, at) => {
        asked.push(at);
        return Promise.resolve([{ topic, partition: 0, offset: 3 }]);
      },
      async *read({ from, to }) {
        yield lines.slice(from, to);
      },
    },
  });
  return { deadLetters, asked };
}

it("reads dead letters of ingest and counts what others have put among them", async () => {
  const { deadLetters } = setup();
  const range = { topic: "messages.dead-letter", partition: 0, from: 0, to: 4 };
  for await (const { deadLetters: read, unreadable, next } of deadLetters.read(range)) {
    expect(read.map(({ place, reason }) => [place.offset, reason])).toEqual([
      [0, "invalid_record"],
      [3, "empty_value"],
    ]);
    expect({ unreadable, next }).toEqual({ unreadable: 2, next: 4 });
  }
});

it("begins where dead letters of the wanted time can be, a moment earlier for other clocks", async () => {
  const { deadLetters, asked } = setup();
  expect(await deadLetters.ranges("messages")).toMatchObject([{ from: 1, to: 4 }]);
  expect(await deadLetters.ranges("messages", { from: AT })).toMatchObject([{ from: 3, to: 4 }]);
  expect(asked).toEqual([AT - 60_000]);
});

it.each([
  [0, null],
  [1, null],
  [3, "empty_value"],
  [4, null],
])("finds at offset %d %s", async (offset, reason) => {
  const found = await setup().deadLetters.find("messages", { partition: 0, offset });
  expect(found?.reason ?? null).toBe(reason);
});

it.each([
  [{}, true],
  [{ reasons: null, from: null, to: null }, true],
  [{ reasons: ["empty_value", "invalid_record"] }, true],
  [{ reasons: ["empty_value"] }, false],
  [{ from: AT, to: AT + 1 }, true],
  [{ from: AT + 1 }, false],
  [{ to: AT }, false],
])("a dead letter fits %j: %s", (filter, fits) => {
  expect(deadLetterFits({ reason: "invalid_record", rejectedAt: AT }, filter)).toBe(fits);
});

it("a dead letter without an instant fits no time", () => {
  expect(deadLetterFits({ reason: "x", rejectedAt: null }, { from: 0 })).toBe(false);
});
