import { open } from "node:fs/promises";
import { join } from "node:path";
import type { BusMessage } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import { afterEach, expect, it } from "vitest";
import { readRange, readTopics } from "../system/read-topics.ts";
import { useBus } from "../system/test-bus.ts";

const WARNING = "a batch has a wrong checksum";

let onWarning = (): void => {};

const log = createLogger({
  service: "test",
  level: "warn",
  destination: {
    write: (line: string) => {
      if (line.includes(WARNING)) onWarning();
    },
  },
});
const bus = useBus({ log });

afterEach(() => {
  onWarning = () => {};
});

const newTopic = async (): Promise<string> => {
  const topic = await bus.newTopic();
  for (const batch of [0, 1, 2]) {
    await bus.producer.send(
      topic,
      [0, 1, 2].map((index) => ({ key: null, value: `value ${3 * batch + index}` })),
    );
  }
  return topic;
};

/** The broker sends its file as it is; a second call flips the bit back. */
const flipOnDisk = async (topic: string, text: string): Promise<void> => {
  const path = join(bus.stack.dir, "kafka", "data", `${topic}-0`, "00000000000000000000.log");
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

type Read = (topic: string, count: number) => Promise<BusMessage[]>;
const readers: readonly (readonly [string, Read])[] = [
  ["group", (topic, count) => readTopics(bus.connection(), [topic], count)],
  ["range", (topic) => readRange(bus.connection(), { topic, partition: 0, from: 0, to: 9 })],
];

it.each(readers)("names the offsets of a batch that is damaged on disk, read by %s", async (_name, read) => {
  const topic = await newTopic();
  await flipOnDisk(topic, "value 4");
  let warnings = 0;
  onWarning = () => {
    warnings += 1;
  };
  expect(placesOf(await read(topic, 7))).toEqual([...values(0, 3), "3 to 5", ...values(6, 9)]);
  expect(warnings).toBe(3);
});

it.each(readers)("reads a damaged batch that the next fetch brings whole, by %s", async (_name, read) => {
  const topic = await newTopic();
  await flipOnDisk(topic, "value 4");
  let mended: Promise<void> | undefined;
  onWarning = () => {
    mended ??= flipOnDisk(topic, "value 4");
  };
  expect(placesOf(await read(topic, 9))).toEqual(values(0, 9));
  await mended;
  expect(mended).toBeDefined();
});
