import type { BusMessage, BusRange } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { BackfillWindow } from "@conversation-export/queue";
import { expect, it } from "vitest";
import type { SourceBatch } from "./event-source.ts";
import { createKafkaSource } from "./kafka-source.ts";

const HOUR = 3_600_000;
const START = Date.parse("2026-11-01T00:00:00Z");
const { signal } = new AbortController();
const TYPES = new Map<string, EventType>([
  ["conversations", "conversation.exported"],
  ["messages", "message.exported"],
  ["end-users", "end_user.exported"],
]);
const windowOf = (by: "upload" | "event", from: number, to: number): BackfillWindow => ({
  by,
  from: new Date(START + from).toISOString(),
  to: new Date(START + to).toISOString(),
});

/** `times` since `START`; the first `gone` are deleted. */
const read = async (
  times: readonly number[],
  given: { growsInTime?: boolean; gone?: number; maxTimeAheadMs?: number },
  window: BackfillWindow | null,
): Promise<{ offsets: number[]; problems: SourceBatch["problems"] }> => {
  const { growsInTime = false, gone = 0, maxTimeAheadMs = 0 } = given;
  const messages = times.map(
    (time, offset): BusMessage => ({
      topic: "messages",
      partition: 0,
      offset,
      key: null,
      value: null,
      headers: {},
      timestamp: START + time,
    }),
  );
  const source = createKafkaSource({
    reader: {
      start: async () => {},
      stop: async () => {},
      topicId: async () => "one",
      bounds: async (topic) =>
        topic === "messages" ? [{ partition: 0, start: gone, end: messages.length }] : [],
      // As a broker does.
      offsetsAt: async (topic, ms) => {
        const first = messages.findIndex(({ offset, timestamp }) => offset >= gone && timestamp >= ms);
        return [{ topic, partition: 0, offset: first < 0 ? messages.length : first }];
      },
      async *read({ from, to, onLost, ...where }: BusRange & { onLost?: (lost: BusRange) => void }) {
        if (from < gone) onLost?.({ ...where, from, to: Math.min(gone, to) });
        yield messages.slice(Math.max(from, gone), to);
      },
    },
    types: TYPES,
    growsInTime: async () => growsInTime,
    maxTimeAheadMs,
  });
  const found = { offsets: [] as number[], problems: [] as SourceBatch["problems"][number][] };
  for (const part of await source.parts(window, signal)) {
    for await (const { events, problems } of source.read(part, signal)) {
      found.offsets.push(...events.map(({ message }) => message.offset));
      found.problems.push(...problems);
    }
  }
  return found;
};

it("goes by the time on the bus in a window of upload, its end excluded", async () => {
  const times = [0, HOUR - 1, HOUR, 2 * HOUR - 1, 2 * HOUR, 3 * HOUR];
  for (const growsInTime of [true, false]) {
    const { offsets } = await read(times, { growsInTime }, windowOf("upload", HOUR, 2 * HOUR));
    expect(offsets, String(growsInTime)).toEqual([2, 3]);
  }
});

it("reads a window of upload to the end of the topic where producers set the times, as they may go back", async () => {
  const times = [HOUR, 3 * HOUR, HOUR + 1, 0, HOUR + 2];
  const { offsets } = await read(times, {}, windowOf("upload", HOUR, 2 * HOUR));
  expect(offsets).toEqual([0, 2, 4]);
});

it("reads a window of `time` to the end of the topic, from as much earlier as an event may be ahead", async () => {
  const times = [0, HOUR - 60_001, HOUR - 60_000, 2 * HOUR, 30 * HOUR];
  for (const growsInTime of [true, false]) {
    const given = { growsInTime, maxTimeAheadMs: 60_000 };
    const { offsets } = await read(times, given, windowOf("event", HOUR, 2 * HOUR));
    expect(offsets, String(growsInTime)).toEqual([2, 3, 4]);
  }
});

it("names what Kafka has deleted of a window of offsets", async () => {
  const ranges = [{ partition: 0, from: 1, to: 5 }];
  const window = { by: "offsets", topic: "messages", ranges } as const;
  const { offsets, problems } = await read([0, 0, 0, 0, 0, 0], { gone: 3 }, window);
  expect(offsets).toEqual([3, 4]);
  expect(problems).toMatchObject([{ place: "messages/0/1", reason: "not_on_the_bus" }]);
  expect(
    (await read([0, 0], { gone: 2 }, { ...window, ranges: [{ partition: 0, from: 0, to: 2 }] })).problems,
  ).toMatchObject([{ place: "messages/0/0", reason: "not_on_the_bus" }]);
});
