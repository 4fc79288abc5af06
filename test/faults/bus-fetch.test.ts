import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createZstdCompress } from "node:zlib";
import {
  type BusMessage,
  type BusRange,
  type ConsumerDeps,
  createConsumer,
  createGroupProgress,
  type MessageSlice,
  type Taken,
} from "@conversation-export/bus";
import kafkajs from "kafkajs";
import { expect, it } from "vitest";
import { readRange } from "../system/read-topics.ts";
import { bySize, isFullSize } from "../system/size.ts";
import { useBus } from "../system/test-bus.ts";
import { until } from "../system/until.ts";

const DEADLINE_MS = 120_000;
const MIB = 1024 * 1024;

const bus = useBus({ compression: "zstd" });
const { connection, newTopic, stops } = bus;

const valuesOf = (messages: readonly BusMessage[]): number[] => messages.map(({ value }) => Number(value));

const offsetsOf = async (range: BusRange): Promise<number[]> =>
  (await readRange(connection(), range)).map(({ offset }) => offset);

const startMember = async (
  topic: string,
  take: (slice: MessageSlice) => Taken = () => "continue",
  more: Partial<ConsumerDeps> = {},
) => {
  const seen: BusMessage[] = [];
  const crashes: unknown[] = [];
  let epoch = 0;
  let next = 0;
  const consumer = createConsumer({
    ...connection(),
    groupId: `group-${topic}`,
    topics: [topic],
    onMessages: (slice) => {
      next = slice.nextOffset;
      const taken = take(slice);
      seen.push(...slice.messages.slice(0, typeof taken === "object" ? taken.processed : undefined));
      return taken;
    },
    onAssigned: (assignment) => {
      epoch = assignment.epoch;
    },
    onRebalancing: () => {},
    onCrash: (error) => crashes.push(error),
    ...more,
  });
  await consumer.start();
  const reads = (what: string, isDone: () => boolean) =>
    until(what, DEADLINE_MS, () => {
      if (crashes.length > 0) throw crashes[0];
      return isDone();
    });
  return { consumer, seen, reads, epoch: () => epoch, next: () => next };
};

it("gives the group no message of an aborted transaction, wherever a fetch begins", async () => {
  const topic = await newTopic();
  const one = await bus.openTransaction(topic, "one");
  const two = await bus.openTransaction(topic, "two");
  const three = await bus.openTransaction(topic, "three");
  await one.write("100");
  await two.write("200");
  await three.write("1");
  await two.write("201");
  await one.write("101");
  // Ends in another order than they began; a marker is written after the answer.
  const progress = createGroupProgress({ ...connection(), groupId: "none" });
  await progress.start();
  stops.push(progress.stop);
  const reaches = (end: number) =>
    until(`the end ${end}`, DEADLINE_MS, async () => {
      // The first group's coordinator may still be loading.
      const { partitions } = await progress.fetch(topic).catch(() => ({ partitions: [] }));
      return partitions[0]?.end === end;
    });
  await two.abort();
  await reaches(6);
  await one.write("102");
  await one.abort();
  await reaches(8);
  await three.commit();
  await reaches(9);
  await bus.producer.send(topic, [{ key: "k", value: "2" }]);
  const end = 10;

  for (let from = 0; from < end; from += 1) {
    const groupId = `group-${topic}-${from}`;
    await bus.admin.setCommitted(groupId, [{ topic, partition: 0, offset: from }]);
    const member = await startMember(topic, undefined, { groupId });
    await member.reads(`from ${from} to the end`, () => member.next() === end);
    expect(valuesOf(member.seen), `from ${from}`).toEqual([1, 2].slice(from <= 2 ? 0 : 1));
    await member.consumer.stop();
  }
});

it("passes control records alone and commits behind them", async () => {
  const topic = await newTopic();
  const member = await startMember(topic);
  const transaction = await bus.openTransaction(topic, "one");
  await transaction.write("100");
  await transaction.abort();
  await member.reads("the end", () => member.next() === 2);
  expect(member.seen).toEqual([]);
  expect(await member.consumer.commit(member.epoch(), [{ topic, partition: 0, offset: 2 }])).toBe(
    "committed",
  );
});

/** Puts everything of one call into one batch, unlike our producer. */
const startRaw = async () => {
  const raw = bus.kafka.producer();
  await raw.connect();
  stops.push(() => raw.disconnect());
  return (topic: string, values: readonly (Buffer | string)[], partition = 0) => {
    const all = values.map((value) => ({ key: null, value, partition }));
    // kafkajs would join them in quadratic time.
    const messages = Object.assign(all, { reduce: () => ({ [partition]: all }) });
    return raw.send({ topic, compression: kafkajs.CompressionTypes.ZSTD, messages });
  };
};

it("reads a batch of 200,000 messages, and one of half a GiB at full size", async () => {
  const topic = await newTopic();
  const send = await startRaw();
  await send(
    topic,
    Array.from({ length: 200_000 }, (_, index) => String(index)),
  );
  const large = isFullSize ? 550 : 20;
  await send(
    topic,
    Array.from({ length: large }, () => Buffer.alloc(MIB)),
  );
  await send(topic, ["end"]);
  let [sum, mib, isEnd] = [0, 0, false];
  const member = await startMember(topic, ({ messages }) => {
    for (const { value } of messages) {
      if (value?.length === MIB) mib += 1;
      else if (value?.toString() === "end") isEnd = true;
      else sum += Number(value);
    }
    return "continue";
  });
  await member.reads("the last message", () => isEnd);
  expect([sum, mib]).toEqual([(199_999 * 200_000) / 2, large]);
});

it("gets every batch whole, though none fits into the limits of a fetch", async () => {
  const topic = await newTopic(3, { "max.message.bytes": String(8 * MIB) });
  const send = await startRaw();
  const noise = randomBytes(5 * MIB);
  for (let index = 0; index < 6; index += 1) await send(topic, [noise, String(index)], index % 3);
  const fetch = { maxBytesPerPartition: 1000, maxBytes: 2000, minBytes: 1, maxWaitMs: 100 };
  const member = await startMember(topic, undefined, { fetch });
  await member.reads("all messages", () => member.seen.length === 12);
  const texts = member.seen.filter(({ value }) => value?.length === 1);
  expect(valuesOf(texts).sort((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(member.seen.filter(({ value }) => value?.equals(noise))).toHaveLength(6);

  expect(await offsetsOf({ topic, partition: 0, from: 1, to: 4 })).toEqual([1, 2, 3]);
});

it("names the place of a record that is too large to be held, and goes on", async () => {
  const topic = await newTopic();
  const send = await startRaw();
  await send(topic, ["first", Buffer.alloc(70 * MIB), "kept"]);
  await send(topic, ["next"]);
  const member = await startMember(topic);
  await member.reads("the last message", () => member.next() === 4);
  expect(member.seen).toMatchObject([
    { offset: 0, value: Buffer.from("first") },
    { offset: 1, value: null, unreadable: { lastOffset: 1, why: expect.stringContaining("too large") } },
    { offset: 2, value: Buffer.from("kept") },
    { offset: 3, value: Buffer.from("next") },
  ]);
  expect(await offsetsOf({ topic, partition: 0, from: 2, to: 4 })).toEqual([2, 3]);
});

it.each([
  "zstd",
  "gzip",
  "lz4",
  "snappy",
])("unpacks a compressed backlog of %s bit by bit: memory stays near what the owner takes", async (codec) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const topic = await newTopic(4, { "compression.type": codec });
  const send = await startRaw();
  const text = Buffer.from("to and fro and back ".repeat(MIB / 20));
  // 128 MiB, which the broker sends in a response of a few MiB.
  for (let index = 0; index < 8; index += 1) {
    await send(
      topic,
      Array.from({ length: 16 }, () => text),
      index % 4,
    );
  }
  const takes = 24 * MIB;
  let taken = 0;
  collect();
  const before = process.memoryUsage().arrayBuffers;
  let peak = 0;
  const member = await startMember(topic, ({ messages }) => {
    collect();
    peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
    let processed = 0;
    for (const { value } of messages) {
      if (taken >= takes) return { processed, pause: true };
      processed += 1;
      taken += value?.length ?? 0;
    }
    return "continue";
  });
  await member.reads("all wait for room", () => member.consumer.pausedCount() === 4);
  console.log(`${codec}: ${(peak / MIB).toFixed(1)} MiB at most, ${(taken / MIB).toFixed(1)} MiB taken`);
  expect(taken).toBeGreaterThanOrEqual(takes);
  expect(peak).toBeLessThan(takes + 32 * MIB);
});

/** Zigzag varint of a record: 7 bits a byte, lowest first. */
const zigzag = (value: number): number[] => {
  const bytes: number[] = [];
  let rest = value * 2;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
};

/** Records of 1 MiB each in one batch, which only a stream can hold. */
function* hugeRecords(count: number): Generator<Buffer> {
  const value = Buffer.alloc(MIB);
  for (let offset = 0; offset < count; offset += 1) {
    const head = [0, 0, ...zigzag(offset), 1, ...zigzag(MIB)];
    yield Buffer.from([...zigzag(head.length + MIB + 1), ...head]);
    yield value;
    yield Buffer.from([0]);
  }
}

it("stays in its group while it passes gigabytes of one batch", async () => {
  const sessionTimeoutMs = 1000;
  const topic = await newTopic(1);
  const count = bySize(3000, 20_000);
  const packed = await buffer(Readable.from(hugeRecords(count)).pipe(createZstdCompress()));
  const send = await startRaw();
  const codecs: Record<number, unknown> = kafkajs.CompressionCodecs;
  const own = codecs[kafkajs.CompressionTypes.ZSTD];
  // Replaces what kafkajs would compress.
  codecs[kafkajs.CompressionTypes.ZSTD] = () => ({ compress: () => Promise.resolve(packed) });
  await send(
    topic,
    Array.from({ length: count }, () => ""),
  );
  codecs[kafkajs.CompressionTypes.ZSTD] = own;

  const groupId = `group-${topic}`;
  await bus.admin.setCommitted(groupId, [{ topic, partition: 0, offset: count - 1 }]);
  const startedAt = performance.now();
  const member = await startMember(topic, undefined, { groupId, sessionTimeoutMs });
  await member.reads("the last message", () => member.next() === count);
  expect(performance.now() - startedAt).toBeGreaterThan(sessionTimeoutMs);
  expect(member.seen.map(({ offset }) => offset)).toEqual([count - 1]);
  expect(await member.consumer.commit(1, [{ topic, partition: 0, offset: count }])).toBe("committed");
});
