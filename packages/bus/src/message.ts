export type TopicPartition = { topic: string; partition: number };

/** `offset` is the next one to read: the last settled one + 1. */
export type PartitionOffset = TopicPartition & { offset: number };

export type BusHeader = Buffer | string | null;

/** Headers by name: null for one without a value, an array for a name that comes several times. */
export type BusHeaders = Record<string, BusHeader | BusHeader[] | undefined>;

/** Records up to `lastOffset` that cannot be read. `why` says nothing of their content. */
export type Unreadable = { lastOffset: number; why: string };

/**
 * One message. `timestamp` in ms, -1 when absent. `key` and `value` are views that keep up to 8 MiB in
 * memory.
 */
export type BusMessage = {
  topic: string;
  partition: number;
  offset: number;
  key: Buffer | null;
  value: Buffer | null;
  headers: BusHeaders;
  timestamp: number;
  /** The broker has set the time when the message arrived; else it is what the publisher says. */
  hasBrokerTime?: boolean;
  /** What it takes in memory, roughly: its length on the bus, unpacked, and its headers' objects. */
  bytes?: number;
  /** Set: this stands for a part of a batch and has neither key nor value. */
  unreadable?: Unreadable;
};
