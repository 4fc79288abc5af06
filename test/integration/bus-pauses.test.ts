import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Consumer, createAdmin, createConsumer, createProducer } from "@conversation-export/bus";
import { startStack } from "@conversation-export/local-stack";
import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { until } from "../support/run/until.ts";

it("reads on after a join, also a partition that was resumed while the drain before it went on", async () => {
  const dir = await mkdtemp(join(tmpdir(), "bus-pauses-"));
  const stack = await startStack({ dir, servers: ["kafka"] });
  const log = createLogger({ service: "test", level: "error" });
  const connection = { brokers: stack.kafka.brokers, clientId: "test", log };
  const admin = createAdmin(connection);
  const producer = createProducer(connection);
  await admin.start();
  await producer.start();
  const topic = "pauses";
  await admin.createTopics([{ topic, partitions: 2 }]);
  const both = [0, 1].map((partition) => ({ topic, partition }));
  const send = (value: string) =>
    producer.send(
      topic,
      both.map(({ partition }) => ({ key: null, value, partition })),
    );

  const seen = new Set<string>();
  const isPaused = new Set<number>();
  const options = { ...connection, groupId: "pauses", topics: [topic], sessionTimeoutMs: 6_000 };
  const onCrash = (error: unknown): void => expect.unreachable(String(error));
  let holds = true;
  let joins = 0;
  const first: Consumer = createConsumer({
    ...options,
    onMessages: ({ partition, messages }) => {
      for (const { value } of messages) seen.add(`${partition} ${value?.toString()}`);
      if (!holds) return "continue";
      isPaused.add(partition);
      return "pause";
    },
    onAssigned: () => void joins++,
    // The owner has room again as soon as its drain has written something.
    onRebalancing: () => {
      holds = false;
      first.resume(both);
    },
    onCrash,
  });
  const second = createConsumer({
    ...options,
    onMessages: ({ partition, messages }) => {
      for (const { value } of messages) seen.add(`${partition} ${value?.toString()}`);
      return "continue";
    },
    onAssigned: () => {},
    onRebalancing: () => {},
    onCrash,
  });
  try {
    await first.start();
    await send("before");
    await until("both partitions are paused", 30_000, () => isPaused.size === 2);
    await second.start();
    await until("the first has joined again", 30_000, () => joins === 2);
    expect(first.assigned()).toHaveLength(1);
    expect(first.pausedCount()).toBe(0);
    await send("after");
    await until("both partitions are read", 15_000, () => seen.has("0 after") && seen.has("1 after"));
  } finally {
    await second.stop();
    await first.stop();
    await producer.stop();
    await admin.stop();
    await stack.stop();
    await rm(dir, { recursive: true, force: true });
  }
});
