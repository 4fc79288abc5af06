import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BusMessage, createAdmin, createConsumer, createProducer } from "@conversation-export/bus";
import { startStack } from "@conversation-export/local-stack";
import { createLogger } from "@conversation-export/runtime";
import { expect, it } from "vitest";
import { until } from "../support/run/until.ts";

const CODECS = ["uncompressed", "gzip", "zstd", "snappy", "lz4"] as const;

it("reads what Kafka's own code has compressed, by every codec that it has", async () => {
  const dir = await mkdtemp(join(tmpdir(), "bus-compression-"));
  const stack = await startStack({ dir, servers: ["kafka"] });
  const log = createLogger({ service: "test", level: "error" });
  const connection = { brokers: stack.kafka.brokers, clientId: "test", log };
  const admin = createAdmin(connection);
  const producer = createProducer(connection);
  await admin.start();
  await producer.start();
  // The broker writes the batches of such a topic anew with the classes of the Java producer.
  await admin.createTopics(
    CODECS.map((codec) => ({ topic: codec, partitions: 1, config: { "compression.type": codec } })),
  );

  // Longer than a block of Snappy (32 KiB) and of LZ4 (64 KiB), and one part that does not compress.
  const values = [
    "short",
    "to and fro ".repeat(20_000),
    randomBytes(100_000).toString("base64"),
    ...Array.from({ length: 2_000 }, (_, index) => `{"number":${index}}`),
  ];
  const seen = new Map<string, BusMessage[]>(CODECS.map((codec) => [codec, []]));
  const crashes: unknown[] = [];
  const consumer = createConsumer({
    ...connection,
    groupId: "compression",
    topics: CODECS,
    onMessages: ({ topic, messages }) => {
      seen.get(topic)?.push(...messages);
      return "continue";
    },
    onAssigned: () => {},
    onRebalancing: () => {},
    onCrash: (error) => crashes.push(error),
  });
  try {
    for (const codec of CODECS) {
      await producer.send(
        codec,
        values.map((value, index) => ({ key: `k${index}`, value, headers: { at: String(index) } })),
      );
    }
    await consumer.start();
    await until("every message is read", 30_000, () => {
      if (crashes.length > 0) throw crashes[0];
      return [...seen.values()].every((messages) => messages.length >= values.length);
    });
    for (const [codec, messages] of seen) {
      expect(
        messages.map(({ value }) => value?.toString()),
        codec,
      ).toEqual(values);
      expect(messages.map(({ headers }) => headers["at"]?.toString())).toEqual(
        values.map((_, index) => String(index)),
      );
    }
  } finally {
    await consumer.stop();
    await producer.stop();
    await admin.stop();
    await stack.stop();
    await rm(dir, { recursive: true, force: true });
  }
});
