import type { BusMessage, TopicPartition } from "../message.ts";
import type { RecordBatch } from "./record-batch.ts";

export const unreadableMessage = (
  { topic, partition }: TopicPartition,
  { maxTimestamp, hasBrokerTime }: RecordBatch,
  place: { readonly offset: number; readonly lastOffset: number; readonly why: string },
): BusMessage => ({
  topic,
  partition,
  offset: place.offset,
  key: null,
  value: null,
  headers: {},
  timestamp: maxTimestamp,
  hasBrokerTime,
  unreadable: { lastOffset: place.lastOffset, why: place.why },
});
