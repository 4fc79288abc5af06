import type { BusMessage, BusRange, DeadLetter } from "@conversation-export/bus";
import { deadLetterOf } from "@conversation-export/domain";
import { expect, it } from "vitest";
import { reconcileHour } from "./reconcile-hour.ts";

const TIME = Date.parse("2026-10-20T09:00:00Z");

const message = (partition: number, offset = 0): BusMessage => ({
  topic: "messages",
  partition,
  offset,
  key: null,
  value: Buffer.from(
    JSON.stringify({
      specversion: "1.0",
      id: "1",
      source: "/test",
      type: "message.exported",
      time: "2026-10-20T09:00:00Z",
      clientid: "acme",
      data: { _id: `m${partition}`, conversation_id: "c", date_created: "2026-10-20T09:00:00Z" },
    }),
  ),
  headers: {},
  timestamp: TIME,
});

const NO_ROWS = { present: () => Promise.resolve([]), deleted: () => Promise.resolve([]) };
/** Neither erased nor expired. */
const NOTHING_ELSE = {
  suppresses: (records: readonly unknown[]) => Promise.resolve(records.map(() => false)),
  isExpired: () => false,
  maxTimeAheadMs: 60_000,
  now: Date.now,
};

const work = (ranges: readonly BusRange[]) => ({
  hour: "2026-10-20T09:00:00Z",
  topic: "messages",
  type: "message.exported" as const,
  ranges,
  madeAnew: 0,
  clientId: null,
  signal: new AbortController().signal,
  onRead: () => Promise.resolve(),
});

it("reads no further partition when one has failed", async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const hour = reconcileHour(
    {
      reader: {
        async *read({ partition, signal }) {
          begun.push(partition);
          try {
            if (partition > 0)
              await new Promise((_, reject) => {
                signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
              });
            yield [message(partition)];
          } finally {
            ended.push(partition);
          }
        },
      },
      deadLetters: { async *list() {} },
      store: {
        lacking: () => Promise.reject(new Error("ClickHouse is away")),
        ...NO_ROWS,
      },
      ...NOTHING_ELSE,
    },
    work(Array.from({ length: 9 }, (_, partition) => ({ topic: "messages", partition, from: 0, to: 1 }))),
  );
  await expect(hour).rejects.toThrow("ClickHouse is away");
  expect(begun).toEqual([0, 1, 2, 3]);
  expect(new Set(ended)).toEqual(new Set(begun));
});

const missingBehind = async (arrivedAt: number, messages: readonly BusMessage[]) => {
  const facts = deadLetterOf({
    "dl-reason": "unreadable_batch",
    "dl-topic": "messages",
    "dl-partition": "0",
    "dl-offset": "1",
    "dl-last-offset": "3",
    "dl-time": new Date(arrivedAt).toISOString(),
  });
  const { report, differences } = await reconcileHour(
    {
      reader: {
        async *read() {
          yield [...messages];
        },
      },
      deadLetters: {
        async *list() {
          yield { ...facts, place: { partition: 0, offset: 0 } } as DeadLetter;
        },
      },
      store: {
        lacking: (_type, exports) => Promise.resolve(exports.map(() => "messages" as const)),
        ...NO_ROWS,
      },
      ...NOTHING_ELSE,
    },
    work([{ topic: "messages", partition: 0, from: 0, to: 9 }]),
  );
  return { clients: report.clients, missing: differences.map(({ offset }) => offset) };
};

it.each([
  ["with its time", TIME],
  ["without a time", -1],
])("explains every message of an unreadable batch %s", async (_, arrivedAt) => {
  const messages = [0, 1, 2, 3, 4].map((offset) => message(0, offset));
  expect(await missingBehind(arrivedAt, messages)).toMatchObject({
    clients: [{ deadLetters: 3, missing: 2 }],
    missing: [0, 4],
  });
});

it("explains nothing by an unreadable batch of a former topic, nor of another partition", async () => {
  expect(await missingBehind(TIME - 1, [message(0, 1)])).toMatchObject({ missing: [1] });
  expect(await missingBehind(TIME, [message(1, 1)])).toMatchObject({ missing: [1] });
});
