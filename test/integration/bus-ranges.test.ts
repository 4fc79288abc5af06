import {
  type BusMessage,
  type BusRange,
  createGroupProgress,
  createProducer,
  createRangeReader,
  type RangeReader,
} from "@conversation-export/bus";
import { afterAll, beforeAll, expect, it } from "vitest";
import { isFullSize } from "../system/size.ts";
import { until, untilItWorks } from "../system/until.ts";
import { useBus } from "../system/test-bus.ts";

let reader: RangeReader;
const bus = useBus();
const { connection, newTopic, stops } = bus;

beforeAll(async () => {
  reader = createRangeReader(connection());
  await reader.start();
});
afterAll(() => reader?.stop());

const commitWith = async (groupId: string, topic: string, metadata: string | null): Promise<void> => {
  // While paused, it sleeps this long before it can leave.
  const member = bus.kafka.consumer({ groupId, maxWaitTimeInMs: 100 });
  await member.connect();
  await member.subscribe({ topics: [topic] });
  // It only commits; fetches are left to the project's reader.
  member.on(member.events.GROUP_JOIN, () => member.pause([{ topic }]));
  await member.run({ autoCommit: false, eachMessage: async () => {} });
  try {
    await untilItWorks("the member has joined", 30_000, () =>
      member.commitOffsets([{ topic, partition: 0, offset: "7", metadata }]),
    );
  } finally {
    await member.disconnect();
  }
};

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);

const send = (topic: string, values: readonly number[], pad = 0): Promise<void> =>
  bus.producer.send(
    topic,
    values.map((value) => ({
      key: "k",
      value: `${value}`.padEnd(pad),
      partition: 0,
      timestamp: 1000 * value,
    })),
  );

const readAll = async (
  range: BusRange & { signal?: AbortSignal; onLost?: (lost: BusRange) => void },
): Promise<BusMessage[]> => {
  const all: BusMessage[] = [];
  for await (const messages of reader.read(range)) {
    expect(messages.length).toBeGreaterThan(0);
    all.push(...messages);
  }
  return all;
};
const offsetsOf = (messages: readonly BusMessage[]): number[] => messages.map(({ offset }) => offset);
const valuesOf = (messages: readonly BusMessage[]): number[] => messages.map(({ value }) => Number(value));

it("reads exactly a range, also from the middle of compressed batches and over many fetches", async () => {
  const topic = await newTopic(2);
  const zstd = createProducer({ ...connection(), compression: "zstd" });
  await zstd.start();
  stops.push(() => zstd.stop());
  await zstd.send(
    topic,
    numbers(0, 200).map((value) => ({
      key: "k",
      value: String(value),
      partition: 1,
      timestamp: 5,
      headers: { h: ["a", "b"] },
    })),
  );
  const got = await readAll({ topic, partition: 1, from: 37, to: 121 });
  expect(offsetsOf(got)).toEqual(numbers(37, 121));
  expect(valuesOf(got)).toEqual(numbers(37, 121));
  expect(got[0]).toMatchObject({ topic, partition: 1, timestamp: 5 });
  expect(got[0]?.headers["h"]).toEqual([Buffer.from("a"), Buffer.from("b")]);
  expect(await readAll({ topic, partition: 1, from: 50, to: 50 })).toEqual([]);
  expect(await readAll({ topic, partition: 0, from: 0, to: 0 })).toEqual([]);

  await send(topic, numbers(0, 120), 100_000);
  expect(valuesOf(await readAll({ topic, partition: 0, from: 1, to: 120 }))).toEqual(numbers(1, 120));
  expect(await reader.bounds(topic)).toEqual([
    { partition: 0, start: 0, end: 120 },
    { partition: 1, start: 0, end: 200 },
  ]);
});

it("tells a topic from one of the same name that was deleted, and reads nothing of it by a former range", async () => {
  const topic = await newTopic();
  await send(topic, numbers(0, 10));
  const topicId = await reader.topicId(topic);
  expect(topicId).toMatch(/^[\da-f]{32}$/);
  expect(await bus.admin.fetchTopicId(topic)).toBe(topicId);
  const range = { topic, topicId, partition: 0, from: 3, to: 6 };
  expect(valuesOf(await readAll(range))).toEqual([3, 4, 5]);
  await bus.admin.deleteTopics([topic]);
  await until("the topic is created anew", 30_000, async () => {
    await bus.admin.createTopics([{ topic, partitions: 1 }]);
    return (await bus.admin.fetchTopicId(topic).catch(() => topicId)) !== topicId;
  });
  await send(topic, numbers(20, 40));
  expect(await reader.topicId(topic)).not.toBe(topicId);
  await expect(readAll(range)).rejects.toMatchObject({ code: "topic_created_anew", retryable: false });
});

it("counts an offset only in the topic in which it was committed, and one of a tool in any", async () => {
  const topic = await newTopic();
  const groupId = `group-${topic}`;
  await send(topic, numbers(0, 10));
  const progress = createGroupProgress({ ...connection(), groupId });
  await progress.start();
  stops.push(progress.stop);
  const committed = async () => [
    (await progress.fetch(topic)).partitions[0]?.committed,
    (await bus.admin.fetchLag(groupId, [topic]))[0]?.committed,
  ];
  await bus.admin.setCommitted(groupId, [{ topic, partition: 0, offset: 5 }]);
  expect(await committed()).toEqual([5, 5]);
  const own = bus.kafka.admin();
  await own.connect();
  stops.push(() => own.disconnect());
  const [before] = await own.fetchOffsets({ groupId, topics: [topic] });
  const metadata = before?.partitions[0]?.metadata ?? "";
  expect(metadata).toBe(`topic-id=${await reader.topicId(topic)}`);
  // As a member that has not noticed that the topic was recreated.
  await commitWith(groupId, topic, "topic-id=00000000000000000000000000000001");
  expect(await committed()).toEqual([null, null]);
  await commitWith(groupId, topic, null);
  expect(await committed()).toEqual([7, 7]);
});

it("finds places by bus time", async () => {
  const topic = await newTopic(2);
  await send(topic, numbers(0, 10));
  const at = async (ms: number) => (await reader.offsetsAt(topic, ms)).map(({ offset }) => offset);
  expect(await at(0)).toEqual([0, 0]);
  expect(await at(3001)).toEqual([4, 0]);
  expect(await at(4000)).toEqual([4, 0]);
  expect(await at(9001)).toEqual([10, 0]);
});

it("leaves out aborted messages and control records, and passes them at the end of a range", async () => {
  const topic = await newTopic();
  const open = (id: string) => bus.openTransaction(topic, id);
  const [one, two, three] = [await open("one"), await open("two"), await open("three")];
  await one.write("100");
  await two.write("200");
  await three.write("1");
  await two.write("201");
  await one.write("101");
  await one.abort();
  await two.abort();
  await three.commit();
  const ends = async () => (await reader.bounds(topic))[0]?.end;
  await until("the markers", 30_000, async () => (await ends()) === 8);
  await send(topic, [2]);
  const to = 9;
  expect(valuesOf(await readAll({ topic, partition: 0, from: 0, to }))).toEqual([1, 2]);
  // Both aborted transactions began before this offset.
  expect(valuesOf(await readAll({ topic, partition: 0, from: 2, to }))).toEqual([1, 2]);
  expect(valuesOf(await readAll({ topic, partition: 0, from: 3, to: 8 }))).toEqual([]);

  const four = await open("four");
  await four.write("3");
  await send(topic, [4]);
  expect(await ends()).toBe(9);
  const whole = readAll({ topic, partition: 0, from: 8, to: 11 });
  await four.commit();
  expect(valuesOf(await whole)).toEqual([2, 3, 4]);
});

it("says what is not there: deleted by retention, behind the end, no such partition", async () => {
  const topic = await newTopic();
  await send(topic, numbers(0, 20));
  const own = bus.kafka.admin();
  await own.connect();
  stops.push(() => own.disconnect());
  await own.fetchTopicOffsets(topic);
  await own.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "8" }] });
  const range = { topic, partition: 0, from: 2, to: 12 };
  await expect(readAll(range)).rejects.toMatchObject({ code: "range_lost", retryable: false });
  const lost: BusRange[] = [];
  const got = await readAll({ ...range, onLost: (part) => lost.push(part) });
  expect(offsetsOf(got)).toEqual(numbers(8, 12));
  expect(lost).toEqual([{ topic, partition: 0, from: 2, to: 8 }]);
  expect(await readAll({ ...range, to: 5, onLost: (part) => lost.push(part) })).toEqual([]);
  expect(lost.at(-1)).toEqual({ topic, partition: 0, from: 2, to: 5 });
  const behind = { code: "range_beyond_end" };
  await expect(readAll({ ...range, from: 15, to: 21 })).rejects.toMatchObject(behind);
  await expect(readAll({ ...range, from: 30, to: 31 })).rejects.toMatchObject(behind);
  await expect(readAll({ ...range, partition: 7 })).rejects.toMatchObject({ code: "bus_range" });
});

it("ends at once when it is aborted, even while it waits", async () => {
  const topic = await newTopic();
  const transaction = await bus.openTransaction(topic, "one");
  await transaction.write("1");
  const stop = new AbortController();
  const reading = readAll({ topic, partition: 0, from: 0, to: 1, signal: stop.signal });
  setTimeout(() => stop.abort(new Error("cancelled")), 200);
  const started = performance.now();
  await expect(reading).rejects.toThrow("cancelled");
  expect(performance.now() - started).toBeLessThan(30_000);
  await transaction.abort();
});

it("goes on when the broker comes back", async () => {
  const topic = await newTopic();
  await send(topic, numbers(0, 100), 100_000);
  const got: number[] = [];
  for await (const messages of reader.read({ topic, partition: 0, from: 0, to: 100 })) {
    if (got.length === 0) {
      await bus.stack.kafka.kill();
      void bus.stack.kafka.start();
    }
    got.push(...offsetsOf(messages));
  }
  expect(got).toEqual(numbers(0, 100));
});

it.runIf(isFullSize)("passes the gaps that compaction leaves", async () => {
  const topic = await newTopic(1, {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
  });
  for (let round = 0; round < 20; round += 1) await send(topic, numbers(20 * round, 20 * round + 20));
  let got: number[] = [];
  await until("compaction", 120_000, async () => {
    await send(topic, [0]);
    const end = (await reader.bounds(topic))[0]?.end ?? 0;
    got = offsetsOf(await readAll({ topic, partition: 0, from: 0, to: end }));
    return got.length < 200;
  });
  for (const from of [0, 5, 19, 20, 199, 399]) {
    expect(offsetsOf(await readAll({ topic, partition: 0, from, to: 400 }))).toEqual(
      got.filter((offset) => offset >= from && offset < 400),
    );
  }
});
