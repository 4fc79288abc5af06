import type { OutgoingMessage, Producer } from "@conversation-export/bus";
import { rejected } from "@conversation-export/domain";
import { createLogger, createMetrics, ServiceError } from "@conversation-export/runtime";
import type { Writer } from "@conversation-export/warehouse";
import { expect, it } from "vitest";
import type { DeadLetter } from "./dead-letter.ts";
import { createIngestMetrics } from "./ingest-metrics.ts";
import { createSink } from "./sink.ts";

const letter = (offset: number, value: string): DeadLetter => ({
  source: {
    topic: "messages",
    partition: 0,
    offset,
    key: Buffer.from("k"),
    value: Buffer.from(value),
    headers: { "x-trace": "t" },
    timestamp: 0,
  },
  rejection: rejected("invalid_record", "because"),
});

const never = (): Promise<never> => Promise.reject(new Error("not asked for"));

it("leaves a note of a dead letter that its topic never takes, and its neighbours go on", async () => {
  const taken: OutgoingMessage[] = [];
  const producer: Producer = {
    start: never,
    stop: never,
    send: (_topic, messages) => {
      if (messages.some(({ value }) => (value?.length ?? 0) > 10)) {
        return Promise.reject(new ServiceError("produce", "MESSAGE_TOO_LARGE"));
      }
      taken.push(...messages);
      return Promise.resolve();
    },
  };
  const writer: Writer = { insert: never, ping: never, close: never };
  const metrics = createIngestMetrics(createMetrics({ service: "test" }));
  const log = createLogger({ service: "test", level: "fatal" });
  const sink = createSink({ writer, producer, metrics, log, now: () => new Date(0) });

  const letters = [letter(1, "small"), letter(2, "far too large"), letter(3, "small")];
  await sink.bury("messages", letters, new AbortController().signal);

  expect(taken.map(({ value, headers }) => [headers?.["dl-offset"], value?.toString() ?? null])).toEqual([
    ["1", "small"],
    ["2", null],
    ["3", "small"],
  ]);
  expect(taken[1]?.headers).toMatchObject({ "dl-reason": "invalid_record", "dl-payload": "left out" });
  expect(taken[1]?.headers).not.toHaveProperty("x-trace");
});
