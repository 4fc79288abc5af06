import { type Admin, createAdmin, createProducer, type Producer } from "@conversation-export/bus";
import { createLogger, type Logger } from "@conversation-export/runtime";
import kafkajs, { type Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll } from "vitest";
import { openTransaction } from "./open-transaction.ts";
import { startTestStack, type TestStack } from "./test-stack.ts";

type Options = {
  readonly log?: Logger;
  readonly compression?: "zstd";
  /** Of the broker. */
  readonly properties?: Readonly<Record<string, string>>;
};

/** Kafka alone, for the tests of one file. */
export const useBus = (options: Options = {}) => {
  const { log = createLogger({ service: "test", level: "silent" }), compression = "none" } = options;
  let stack: TestStack;
  let kafka: Kafka;
  let admin: Admin;
  let producer: Producer;
  let topics = 0;
  /** After each test, the last first. */
  const stops: (() => Promise<void>)[] = [];
  const connection = () => ({ brokers: stack.kafka.brokers, clientId: "test", log });
  const newName = (): string => `topic-${++topics}`;

  beforeAll(async () => {
    const kafkaListeners = { ports: {}, properties: options.properties ?? {} };
    stack = await startTestStack({ servers: ["kafka"], kafkaListeners });
    kafka = new kafkajs.Kafka({ brokers: [...stack.kafka.brokers], logLevel: kafkajs.logLevel.NOTHING });
    admin = createAdmin(connection());
    producer = createProducer({ ...connection(), compression });
    for (const client of [admin, producer]) await client.start();
  });
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  afterAll(async () => {
    for (const client of [producer, admin]) await client?.stop();
    await stack?.stop();
  });

  return {
    stops,
    connection,
    newName,
    get stack() {
      return stack;
    },
    /** For what the project's own clients cannot do. */
    get kafka() {
      return kafka;
    },
    get admin() {
      return admin;
    },
    get producer() {
      return producer;
    },
    newTopic: async (partitions = 1, config: Record<string, string> = {}): Promise<string> => {
      const topic = newName();
      await admin.createTopics([{ topic, partitions, config }]);
      return topic;
    },
    openTransaction: async (topic: string, id: string) => {
      const transaction = await openTransaction(kafka, topic, id);
      stops.push(transaction.close);
      return transaction;
    },
  };
};
