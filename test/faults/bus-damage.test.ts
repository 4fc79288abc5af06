import { open } from "node:fs/promises";
import { join } from "node:path";
import { type BusMessage, createConsumer } from "@conversation-export/bus";
import { createLogger } from "@conversation-export/runtime";
import { afterEach, expect, it } from "vitest";
import { readRange, readTopics } from "../system/read-topics.ts";
import { useBus } from "../system/test-bus.ts";
import { until } from "../system/until.ts";

const WARNING = "a batch has a wrong checksum";
/** Behind the first offset. */
const BATCH_LENGTH_AT = 8;

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
      [0, 1, 2].map((index) => ({ key: null, value: `value ${3 * batch + index}`, partition: 0 })),
    );
  }
  return topic;
};

/** The broker sends its file as it is. */
const changeOnDisk = async (
  place: { topic: string; partition: number },
  change: (bytes: Buffer) => { at: number; to: Buffer },
): Promise<void> => {
  const log = `${place.topic}-${place.partition}`;
  const file = await open(join(bus.stack.dir, "kafka", "data", log, "00000000000000000000.log"), "r+");
  try {
    const { at, to } = change(await file.readFile());
    await file.write(to, 0, to.length, at);
  } finally {
    await file.close();
  }
};

/** A second call flips the bit back. */
const flipOnDisk = (topic: string, text: string): Promise<void> =>
  changeOnDisk({ topic, partition: 0 }, (bytes) => {
    // The length of the key: without a checksum nothing would look wrong.
    const at = bytes.indexOf(text) - 2;
    return { at, to: Buffer.from([bytes.readUInt8(at) ^ 1]) };
  });

/** Of the second batch, which begins behind the first; gives what was there. */
const setLengthOnDisk = async (
  place: { topic: string; partition: number },
  length: number,
): Promise<number> => {
  let before = 0;
  await changeOnDisk(place, (bytes) => {
    const at = BATCH_LENGTH_AT + bytes.readInt32BE(BATCH_LENGTH_AT) + 12;
    before = bytes.readInt32BE(at);
    const to = Buffer.alloc(4);
    to.writeInt32BE(length);
    return { at, to };
  });
  return before;
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

// The broker finds the first length itself, and sends the second as it is.
it.each([
  5, 30,
])("waits with a partition whose file is damaged, and reads the others: a length of %i", async (length) => {
  const topic = await bus.newTopic(2);
  const send = async (partition: number, from: number, to: number): Promise<void> => {
    for (let value = from; value < to; value += 1)
      await bus.producer.send(topic, [{ key: null, value: String(value), partition }]);
  };
  await send(0, 0, 3);
  await send(1, 0, 3);
  const damaged = { topic, partition: 1 };
  const before = await setLengthOnDisk(damaged, length);

  const read: string[] = [];
  const readUntil = (count: number): Promise<void> =>
    until(`${count} messages`, 60_000, () => {
      if (crashes.length > 0) throw crashes[0];
      return read.length >= count;
    });
  const crashes: unknown[] = [];
  let joins = 0;
  const consumer = createConsumer({
    ...bus.connection(),
    groupId: `group-${topic}`,
    topics: [topic],
    onMessages: ({ partition, messages }) => {
      read.push(...messages.map(({ value }) => `${partition}: ${value?.toString()}`));
      return "continue";
    },
    onAssigned: () => {
      joins += 1;
    },
    onRebalancing: () => {},
    onCrash: (error) => crashes.push(error),
  });
  bus.stops.push(() => consumer.stop());
  await consumer.start();
  await readUntil(4);
  await until("it waits", 60_000, () => consumer.pausedCount() === 1);
  await send(0, 3, 6);
  await readUntil(7);
  expect(read.toSorted()).toEqual(["0: 0", "0: 1", "0: 2", "0: 3", "0: 4", "0: 5", "1: 0"]);

  await setLengthOnDisk(damaged, before);
  await readUntil(9);
  expect(read.slice(7)).toEqual(["1: 1", "1: 2"]);
  expect(joins).toBe(1);
});
