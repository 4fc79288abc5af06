import {
  createConsumer,
  createGroupProgress,
  createRangeReader,
  type GroupProgress,
  type OutgoingMessage,
} from "@conversation-export/bus";
import type { Server } from "@conversation-export/local-stack";
import type { Kafka } from "kafkajs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startSecondBroker } from "../system/second-broker.ts";
import { useBus } from "../system/test-bus.ts";
import { until, untilItWorks } from "../system/until.ts";
import { whileStopped } from "../system/while-stopped.ts";

const DEADLINE_MS = 60_000;
const GROUP = "readers";
const TOPIC = "two-replicas";

let second: Server;
let progress: GroupProgress;
let raw: ReturnType<Kafka["admin"]>;

const bus = useBus({
  // A hung broker stays in sync for the whole test.
  properties: { "broker.session.timeout.ms": "300000", "replica.lag.time.max.ms": "300000" },
});
const { connection } = bus;

beforeAll(async () => {
  progress = createGroupProgress({ ...connection(), groupId: GROUP });
  await progress.start();
  // With one broker, so that this one keeps the offsets of groups.
  await bus.admin.createTopics([{ topic: "one-replica", partitions: 1 }]);
  await bus.admin.setCommitted(GROUP, [{ topic: "one-replica", partition: 0, offset: 0 }]);
  const early = bus.admin.createTopics(
    [{ topic: "early", partitions: 1, replicationFactor: 2 }],
    DEADLINE_MS,
  );
  early.catch(() => undefined);
  second = await startSecondBroker(bus.stack);
  await early;
  expect(await bus.admin.fetchReplicas("early")).toBe(2);
  raw = bus.kafka.admin();
  await raw.connect();
  const replicaAssignment = [{ partition: 0, replicas: [1, 2] }];
  await until("the topic with two replicas", DEADLINE_MS, () =>
    raw
      .createTopics({ topics: [{ topic: TOPIC, replicaAssignment }] })
      .then((isNew) => isNew)
      .catch(() => false),
  );
});

afterAll(async () => {
  await raw?.disconnect();
  await progress?.stop();
  await second?.kill();
});

const end = async (): Promise<number | undefined> => (await progress.fetch(TOPIC)).partitions[0]?.end;

it("counts a message as arrived when every replica in sync has it, which is when acks=all is answered", async () => {
  await until("the topic", DEADLINE_MS, () =>
    bus.producer.send(TOPIC, [{ key: null, value: "replicated" }]).then(() => true),
  );
  expect(await end()).toBe(1);

  const careless = bus.kafka.producer();
  await careless.connect();
  bus.stops.push(() => careless.disconnect());
  let acknowledged = false;
  const { sent } = await whileStopped(second, async () => {
    // Only the leader answers: the message is not safe and nobody can read it.
    await careless.send({ topic: TOPIC, acks: 1, messages: [{ value: "on the leader" }] });
    const waiting = bus.producer.send(TOPIC, [{ key: null, value: "on all" }]).then(() => {
      acknowledged = true;
    });
    expect(await end()).toBe(1);
    expect(acknowledged).toBe(false);
    return { sent: waiting };
  });
  await sent;
  expect(await end()).toBe(3);
});

const createSpread = async (topic: string): Promise<void> => {
  const replicaAssignment = [1, 2].map((id, partition) => ({ partition, replicas: [id] }));
  await until("a topic on two brokers", DEADLINE_MS, () =>
    raw.createTopics({ topics: [{ topic, replicaAssignment }] }).catch(() => false),
  );
};

/** A new topic has no leaders at first. */
const firstSent = (topic: string, messages: readonly OutgoingMessage[]): Promise<void> =>
  untilItWorks("the first messages", DEADLINE_MS, () => bus.producer.send(topic, messages));

const leadByFirst = async (topic: string): Promise<void> => {
  await raw.alterPartitionReassignments({
    topics: [{ topic, partitionAssignment: [{ partition: 1, replicas: [1] }] }],
  });
  await until("the first broker leads both", DEADLINE_MS, async () => {
    const [found] = (await raw.fetchTopicMetadata({ topics: [topic] })).topics;
    return found?.partitions.every(({ leader, isr }) => leader === 1 && isr.length === 1) ?? false;
  });
};

it("delivers again what a late drain left behind, though the old epoch's fetch brings control records alone", async () => {
  const topic = "two-leaders";
  await createSpread(topic);
  await firstSent(topic, [{ key: null, value: "kept", partition: 1 }]);

  const seen: string[] = [];
  const epochs: number[] = [];
  let next = 0;
  const drain = Promise.withResolvers<void>();
  const crashes: unknown[] = [];
  const member = createConsumer({
    ...connection(),
    groupId: `group-${topic}`,
    topics: [topic],
    sessionTimeoutMs: 2000,
    // The running fetch outlives the drain and the join.
    fetch: { minBytes: 1, maxWaitMs: 10_000 },
    onMessages: ({ epoch, messages, nextOffset }) => {
      next = nextOffset;
      seen.push(...messages.map(({ value }) => `${epoch} ${value?.toString()}`));
      return "continue";
    },
    onAssigned: ({ epoch }) => {
      epochs.push(epoch);
      next = 0;
    },
    onRebalancing: () => drain.promise,
    onCrash: (error) => crashes.push(error),
  });
  await member.start();
  try {
    await until("the message", DEADLINE_MS, () => seen.length === 1);
    // Only the fetcher of the first broker rejoins: it learns that another broker leads.
    await raw.alterPartitionReassignments({
      topics: [{ topic, partitionAssignment: [{ partition: 0, replicas: [2] }] }],
    });
    await until("the second epoch", DEADLINE_MS, () => epochs.length === 2);
    const own = bus.kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true });
    await own.connect();
    const transaction = await own.transaction();
    await transaction.send({ topic, messages: [{ value: "aborted", partition: 1 }] });
    await transaction.abort();
    await own.disconnect();
    await until("the end", DEADLINE_MS, () => next === 3);
  } finally {
    drain.resolve();
    await member.stop();
  }
  expect(seen).toEqual(["1 kept", "2 kept"]);
  expect(epochs).toEqual([1, 2]);
  expect(crashes).toEqual([]);
});

it("sends a partition to the broker that leads it now, though that one has answered for another partition", async () => {
  const topic = "moved-while-sending";
  await createSpread(topic);
  const messages = [0, 1].map((partition) => ({ key: null, value: "on both", partition }));
  const ends = async (): Promise<number[]> =>
    (await raw.fetchTopicOffsets(topic))
      .toSorted((one, other) => one.partition - other.partition)
      .map(({ high }) => Number(high));
  await firstSent(topic, messages);
  const before = await ends();
  await leadByFirst(topic);
  await bus.producer.send(topic, messages);
  expect(await ends()).toEqual(before.map((end) => end + 1));
});

it("reads the rest of a range from the broker that leads its partition now", async () => {
  const topic = "moved-while-reading";
  await createSpread(topic);
  const reader = createRangeReader(connection());
  await reader.start();
  try {
    // More than one fetch returns.
    const value = Buffer.alloc(900_000);
    await firstSent(
      topic,
      Array.from({ length: 8 }, () => ({ key: null, value, partition: 1 })),
    );
    const to = (await reader.bounds(topic))[1]?.end ?? 0;
    const offsets: number[] = [];
    for await (const messages of reader.read({ topic, partition: 1, from: 0, to })) {
      if (offsets.length === 0) {
        expect(messages.length).toBeLessThan(to);
        await leadByFirst(topic);
      }
      offsets.push(...messages.map(({ offset }) => offset));
    }
    expect(offsets).toEqual(Array.from({ length: to }, (_, offset) => offset));
  } finally {
    await reader.stop();
  }
});
