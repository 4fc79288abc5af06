import { createAdmin, createConsumer } from "@conversation-export/bus";
import type { Server } from "@conversation-export/local-stack";
import { createLogger } from "@conversation-export/runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startSecondBroker } from "../system/second-broker.ts";
import { startTestStack, type TestStack } from "../system/test-stack.ts";

const TOPIC = "events";

let stack: TestStack;
let second: Server | undefined;

beforeAll(async () => {
  // The offsets topic needs two brokers, so groups have no coordinator.
  const properties = { "offsets.topic.replication.factor": "2" };
  stack = await startTestStack({ servers: ["kafka"], kafkaListeners: { ports: {}, properties } });
});
afterAll(async () => {
  await second?.kill();
  await stack?.stop();
});

it("a consumer waits until its group has a coordinator, though kafkajs has given up", async () => {
  const gaveUp = Promise.withResolvers<void>();
  const log = createLogger({ service: "test", level: "silent" });
  const watched = Object.create(log, {
    warn: {
      value: (_: object, message: string) => {
        if (message === "waiting for the coordinator of the group") gaveUp.resolve();
      },
    },
  }) as typeof log;
  const connection = { brokers: stack.kafka.brokers, clientId: "test", log: watched };
  const admin = createAdmin(connection);
  await admin.start();
  await admin.createTopics([{ topic: TOPIC, partitions: 1 }]);
  await admin.stop();

  const assigned = Promise.withResolvers<void>();
  const consumer = createConsumer({
    ...connection,
    groupId: "readers",
    topics: [TOPIC],
    onMessages: () => "continue",
    onAssigned: () => assigned.resolve(),
    onRebalancing: () => {},
    onCrash: (error) => {
      gaveUp.reject(error);
      assigned.reject(error);
    },
  });
  const started = consumer.start();
  await gaveUp.promise;
  second = await startSecondBroker(stack);
  await Promise.all([started, assigned.promise]);
  expect(consumer.isJoined()).toBe(true);
  await consumer.stop();
});
