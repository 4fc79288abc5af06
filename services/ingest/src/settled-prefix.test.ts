import { expect, it } from "vitest";
import { createSettledPrefix } from "./settled-prefix.ts";
import { createTopicBatches, type TopicBatch } from "./topic-batch.ts";

const { open } = createTopicBatches({
  topic: "messages",
  type: "message.exported",
  landingDays: null,
  traces: null,
  gate: { judgement: () => 1 },
  now: () => 0,
});

/** Flushes that end when the test lets them, but not before the flush before them. */
const startPrefix = () => {
  const stored = new Map<TopicBatch, PromiseWithResolvers<void>>();
  const events: string[] = [];
  const names = new Map<TopicBatch, string>();
  const prefix = createSettledPrefix({
    flush: async (batch, before) => {
      const work = Promise.withResolvers<void>();
      stored.set(batch, work);
      await Promise.all([work.promise, before]);
      return { reusable: true };
    },
    signal: new AbortController().signal,
    onSettled: (batch, reusable) => events.push(`settled ${names.get(batch)} ${reusable}`),
    onFailed: (error) => events.push(`failed ${String(error)}`),
    onEnd: (batch) => events.push(`end ${names.get(batch)}`),
  });
  const flush = (name: string): TopicBatch => {
    const batch = open(1);
    names.set(batch, name);
    prefix.flush(batch);
    return batch;
  };
  return { prefix, flush, stored, events };
};

it("settles batches in their order, whichever is stored first", async () => {
  const { prefix, flush, stored, events } = startPrefix();
  const [first, second] = [flush("first"), flush("second")];
  expect(prefix.inFlight()).toEqual([first, second]);
  stored.get(second)?.resolve();
  await stored.get(second)?.promise;
  expect(events).toEqual([]);
  stored.get(first)?.resolve();
  await expect.poll(() => prefix.inFlight()).toEqual([]);
  expect(events.filter((event) => event.startsWith("settled"))).toEqual([
    "settled first true",
    "settled second true",
  ]);
});

it("settles nothing behind a batch that failed", async () => {
  const { prefix, flush, stored, events } = startPrefix();
  const [first, second] = [flush("first"), flush("second")];
  stored.get(second)?.resolve();
  stored.get(first)?.reject(new Error("a bug"));
  await expect.poll(() => prefix.inFlight()).toEqual([]);
  expect(events).toEqual(["failed Error: a bug", "end first", "failed Error: a bug", "end second"]);
});
