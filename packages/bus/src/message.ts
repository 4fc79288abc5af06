import { ServiceError } from "@conversation-export/runtime";
import type { KafkaMessage } from "kafkajs";

export type TopicPartition = { topic: string; partition: number };

/** `offset` is the next one to read: the last settled one + 1. */
export type PartitionOffset = TopicPartition & { offset: number };

export type BusHeader = Buffer | string | null;

/** A header may come without a value, which is null, and several times, which is an array. */
export type BusHeaders = Record<string, BusHeader | BusHeader[] | undefined>;

/**
 * One message as it lies on the bus. `timestamp` is in milliseconds. `key` and `value` are views of the whole
 * fetch response, which stays in memory as long as one of them does.
 */
export type BusMessage = {
  topic: string;
  partition: number;
  offset: number;
  key: Buffer | null;
  value: Buffer | null;
  headers: BusHeaders;
  timestamp: number;
};

/**
 * Reads an offset of the protocol as a number.
 * @throws ServiceError `offset_range` beyond 2^53 - 1, where neighbours would become equal
 */
export const toOffset = (text: string): number => {
  const offset = Number(text);
  if (Number.isSafeInteger(offset)) return offset;
  throw new ServiceError("offset_range", `offset ${text} is not a safe integer`);
};

const NO_HEADERS: BusHeaders = Object.freeze({});

/** One new object for each message: this is the hot path. */
export const toBusMessage = (topic: string, partition: number, message: KafkaMessage): BusMessage => ({
  topic,
  partition,
  offset: toOffset(message.offset),
  key: message.key,
  value: message.value,
  headers: message.headers ?? NO_HEADERS,
  timestamp: Number(message.timestamp),
});
