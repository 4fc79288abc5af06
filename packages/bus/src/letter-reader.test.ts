import { expect, it } from "vitest";
import { createLetterReader, letterFits } from "./letter-reader.ts";
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
  const letters = createLetterReader({
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
  return { letters, asked };
}

it("reads letters of ingest and counts what others have put among them", async () => {
  const { letters } = setup();
  const range = { topic: "messages.dead-letter", partition: 0, from: 0, to: 4 };
  for await (const { letters: read, unreadable, next } of letters.read(range)) {
    expect(read.map(({ place, reason }) => [place.offset, reason])).toEqual([
      [0, "invalid_record"],
      [3, "empty_value"],
    ]);
    expect({ unreadable, next }).toEqual({ unreadable: 2, next: 4 });
  }
});

it("begins where letters of the wanted time can be, a moment earlier for other clocks", async () => {
  const { letters, asked } = setup();
  expect(await letters.ranges("messages")).toMatchObject([{ from: 1, to: 4 }]);
  expect(await letters.ranges("messages", { from: AT })).toMatchObject([{ from: 3, to: 4 }]);
  expect(asked).toEqual([AT - 60_000]);
});

it.each([
  [0, null],
  [1, null],
  [3, "empty_value"],
  [4, null],
])("finds at offset %d %s", async (offset, reason) => {
  const found = await setup().letters.find("messages", { partition: 0, offset });
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
])("a letter fits %j: %s", (filter, fits) => {
  expect(letterFits({ reason: "invalid_record", rejectedAt: AT }, filter)).toBe(fits);
});

it("a letter without an instant fits no time", () => {
  expect(letterFits({ reason: "x", rejectedAt: null }, { from: 0 })).toBe(false);
});
