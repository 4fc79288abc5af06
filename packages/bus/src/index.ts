export { type Admin, createAdmin, type NewTopic, type PartitionLag } from "./admin.ts";
export type { Connection } from "./kafkajs/connection.ts";
export { isTooLarge } from "./kafkajs/errors.ts";
export { createConsumer } from "./consumer/consumer.ts";
export type { Consumer, ConsumerDeps, MessageSlice, Taken } from "./consumer/contract.ts";
export {
  createGroupProgress,
  type GroupProgress,
  type PartitionProgress,
  type TopicProgress,
} from "./group-progress.ts";
export {
  createDeadLetterReader,
  type DeadLetter,
  deadLetterFits,
  type DeadLetterReader,
} from "./dead-letter-reader.ts";
export { requireToken } from "./login/shared-tokens.ts";
export type { BusHeaders, BusMessage, PartitionOffset, TopicPartition } from "./message.ts";
export { createProducer, type OutgoingMessage, type Producer } from "./producer.ts";
export { type BusRange, createRangeReader, type RangeReader } from "./range-reader.ts";
