import {
  type Admin,
  createAdmin,
  createGroupProgress,
  createProducer,
  type GroupProgress,
  type Producer,
} from "@conversation-export/bus";
import type { Server } from "@conversation-export/local-stack";
import { createLogger } from "@conversation-export/runtime";
import kafkajs, { type Kafka } from "kafkajs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startSecondBroker } from "../system/second-broker.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";
import { until } from "../system/until.ts";

const DEADLINE_MS = 60_000;
const GROUP = "readers";
const TOPIC = "two-replicas";

let stack: TestStack;
let second: Server;
let admin: Admin;
let producer: Producer;
let progress: GroupProgress;
/** For what the project never does itself: a producer that does not wait for the replicas. */
let kafka: Kafka;

const log = createLogger({ service: "test", level: "silent" });
const connection = () => ({ brokers: stack.kafka.brokers, clientId: "test", log });

beforeAll(async () => {
  // A broker that hangs stays among those in sync for as long as the test takes.
  const properties = { "broker.session.timeout.ms": "300000", "replica.lag.time.max.ms": "300000" };
  stack = await startTestStack({ servers: ["kafka"], kafkaListeners: { ports: {}, properties } });
  kafka = new kafkajs.Kafka({ brokers: [...stack.kafka.brokers], logLevel: kafkajs.logLevel.NOTHING });
  admin = createAdmin(connection());
  producer = createProducer(connection());
  progress = createGroupProgress({ ...connection(), groupId: GROUP });
  for (const client of [admin, producer, progress]) await client.start();
  // While there is one broker, so that it keeps the offsets of groups.
  await admin.createTopics([{ topic: "one-replica", partitions: 1 }]);
  await admin.setCommitted(GROUP, [{ topic: "one-replica", partition: 0, offset: 0 }]);
  second = await startSecondBroker(stack);
  const raw = kafka.admin();
  await raw.connect();
  const replicaAssignment = [{ partition: 0, replicas: [1, 2] }];
  await until("the topic with two replicas", DEADLINE_MS, () =>
    raw
      .createTopics({ topics: [{ topic: TOPIC, replicaAssignment }] })
      .then((isNew) => isNew)
      .catch(() => false),
  );
  await raw.disconnect();
});

afterAll(async () => {
  for (const client of [progress, producer, admin]) await client?.stop();
  await second?.kill();
  await stack?.stop();
});

const end = async (): Promise<number | undefined> => (await progress.fetch(TOPIC))[0]?.end;

it("counts a message as arrived when every replica in sync has it, which is when acks=all is answered", async () => {
  await until("the topic", DEADLINE_MS, () =>
    producer.send(TOPIC, [{ key: null, value: "replicated" }]).then(() => true),
  );
  expect(await end()).toBe(1);

  const careless = kafka.producer();
  await careless.connect();
  const { pid } = second;
  if (pid === undefined) throw new Error("the second broker is down");
  process.kill(pid, "SIGSTOP");
  let acknowledged = false;
  let sent: Promise<void> | undefined;
  try {
    // The leader alone answers; the message is not safe yet, and nobody can read it.
    await careless.send({ topic: TOPIC, acks: 1, messages: [{ value: "on the leader" }] });
    sent = producer.send(TOPIC, [{ key: null, value: "on all" }]).then(() => {
      acknowledged = true;
    });
    expect(await end()).toBe(1);
    expect(acknowledged).toBe(false);
  } finally {
    process.kill(pid, "SIGCONT");
    await careless.disconnect();
  }
  await sent;
  expect(await end()).toBe(3);
});
