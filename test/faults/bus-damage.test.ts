import { open } from "node:fs/promises";
import { join } from "node:path";
import {
  type Admin,
  type BusMessage,
  createAdmin,
  createConsumer,
  createProducer,
  createRangeReader,
  type Producer,
} from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";

const DEADLINE_MS = 60_000;
const WARNING = "a batch has a wrong checksum";

let stack: TestStack;
let admin: Admin;
let producer: Producer;
let names = 0;
let onWarning = (): void => {};
const stops: (() => Promise<void>)[] = [];

const log = createLogger({
  service: "test",
  level: "warn",
  destination: {
    write: (line: string) => {
      if (line.includes(WARNING)) onWarning();
    },
  },
});
const connection = () => ({ brokers: stack.kafka.brokers, clientId: "test", log });

beforeAll(async () => {
  stack = await startTestStack({ servers: ["kafka"] });
  admin = createAdmin(connection());
  producer = createProducer(connection());
  for (const client of [admin, producer]) await client.start();
});

afterEach(async () => {
  onWarning = () => {};
  for (const stop of stops.splice(0).reverse()) await stop();
});

afterAll(async () => {
  for (const client of [producer, admin]) await client?.stop();
  await stack?.stop();
});

const newTopic = async (): Promise<string> => {
  const topic = `damage-${++names}`;
  await admin.createTopics([{ topic, partitions: 1 }]);
  for (const batch of [0, 1, 2]) {
    await producer.send(
      topic,
      [0, 1, 2].map((index) => ({ key: null, value: `value ${3 * batch + index}` })),
    );
  }
  return topic;
};

/** The broker sends its file as it is; a second call flips the bit back. */
const flipOnDisk = async (topic: string, text: string): Promise<void> => {
  const path = join(stack.dir, "kafka", "data", `${topic}-0`, "00000000000000000000.log");
  const file = await open(path, "r+");
  try {
    const bytes = await file.readFile();
    // The length of the key: without a checksum nothing would look wrong.
    const at = bytes.indexOf(text) - 2;
    await file.write(Buffer.from([bytes.readUInt8(at) ^ 1]), 0, 1, at);
  } finally {
    await file.close();
  }
};

const placesOf = (messages: readonly BusMessage[]): string[] =>
  messages.map(({ offset, value, unreadable }) =>
    unreadable === undefined ? `${offset} ${value?.toString()}` : `${offset} to ${unreadable.lastOffset}`,
  );
const values = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `${from + index} value ${from + index}`);

const readAsGroup = async (topic: string): Promise<string[]> => {
  const seen: BusMessage[] = [];
  let next = 0;
  const crashes: unknown[] = [];
  const consumer = createConsumer({
    ...connection(),
    groupId: `group-${topic}`,
    topics: [topic],
    onMessages: ({ messages, nextOffset }) => {
      seen.push(...messages);
      next = nextOffset;
      return "continue";
    },
    onAssigned: () => {},
    onRebalancing: () => {},
    onCrash: (error) => crashes.push(error),
  });
  await consumer.start();
  stops.push(() => consumer.stop());
  await until("the end", DEADLINE_MS, () => next === 9);
  expect(crashes).toEqual([]);
  return placesOf(seen);
};

const readAsRange = async (topic: string): Promise<string[]> => {
  const reader = createRangeReader(connection());
  await reader.start();
  stops.push(() => reader.stop());
  const seen: BusMessage[] = [];
  for await (const messages of reader.read({ topic, partition: 0, from: 0, to: 9 })) seen.push(...messages);
  return placesOf(seen);
};

const readers = [
  ["group", readAsGroup],
  ["range", readAsRange],
] as const;

it.each(readers)("names the offsets of a batch that is damaged on disk, read by %s", async (_name, read) => {
  const topic = await newTopic();
  await flipOnDisk(topic, "value 4");
  let warnings = 0;
  onWarning = () => {
    warnings += 1;
  };
  expect(await read(topic)).toEqual([...values(0, 3), "3 to 5", ...values(6, 9)]);
  expect(warnings).toBe(3);
});

it.each(readers)("reads a damaged batch that the next fetch brings whole, by %s", async (_name, read) => {
  const topic = await newTopic();
  await flipOnDisk(topic, "value 4");
  let mended: Promise<void> | undefined;
  onWarning = () => {
    mended ??= flipOnDisk(topic, "value 4");
  };
  expect(await read(topic)).toEqual(values(0, 9));
  await mended;
  expect(mended).toBeDefined();
});
