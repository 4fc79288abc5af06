import type { BusMessage } from "@conversation-export/bus";
import { expect, it } from "vitest";
import { reconcileHour } from "./reconcile-hour.ts";

const message = (partition: number): BusMessage => ({
  topic: "messages",
  partition,
  offset: 0,
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
  timestamp: Date.parse("2026-10-20T09:00:00Z"),
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
        present: () => Promise.resolve([]),
      },
      suppresses: async (records) => records.map(() => false),
      isExpired: () => false,
      maxTimeAheadMs: 60_000,
      now: Date.now,
    },
    {
      hour: "2026-10-20T09:00:00Z",
      topic: "messages",
      type: "message.exported",
      ranges: Array.from({ length: 9 }, (_, partition) => ({ topic: "messages", partition, from: 0, to: 1 })),
      madeAnew: 0,
      clientId: null,
      signal: new AbortController().signal,
      onRead: () => Promise.resolve(),
    },
  );
  await expect(hour).rejects.toThrow("ClickHouse is away");
  expect(begun).toEqual([0, 1, 2, 3]);
  expect(new Set(ended)).toEqual(new Set(begun));
});
