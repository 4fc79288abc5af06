export { type Admin, createAdmin, type NewTopic, type PartitionBounds, type PartitionLag } from "./admin.ts";
export type { Connection } from "./connection.ts";
export {
  type Consumer,
  type ConsumerDeps,
  createConsumer,
  type FetchLimits,
  type MessageSlice,
  type Taken,
} from "./consumer.ts";
export { createGroupProgress, type GroupProgress, type PartitionProgress } from "./group-progress.ts";
export { lagOf } from "./lag.ts";
export {
  createLetterReader,
  type Letter,
  type LetterFilter,
  letterFits,
  type LetterReader,
} from "./letter-reader.ts";
export type { BusHeaders, BusMessage, PartitionOffset, TopicPartition } from "./message.ts";
export { createProducer, type OutgoingMessage, type Producer, type ProducerDeps } from "./producer.ts";
export { readMessage } from "./read-message.ts";
export { type BusRange, createRangeReader, type RangeReader } from "./range-reader.ts";
