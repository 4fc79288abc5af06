export type TopicPartition = { topic: string; partition: number };

/** `offset`: the next one to read. */
export type PartitionOffset = TopicPartition & { offset: number };

export type PartitionBounds = { partition: number; start: number; end: number };

type BusHeader = Buffer | string | null;

/** null: without a value; an array: the name comes several times. */
export type BusHeaders = Record<string, BusHeader | BusHeader[] | undefined>;

/** `why`: without content. */
export type Unreadable = { lastOffset: number; why: string };

/** `timestamp`: ms, -1: none; `key` and `value` are views that keep up to 8 MiB in memory. */
export type BusMessage = {
  topic: string;
  partition: number;
  offset: number;
  key: Buffer | null;
  value: Buffer | null;
  headers: BusHeaders;
  timestamp: number;
  /** Otherwise set by the publisher. */
  hasBrokerTime?: boolean;
  bytes?: number;
  /** Has neither key nor value. */
  unreadable?: Unreadable;
};
