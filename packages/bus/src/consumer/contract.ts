import type { Metrics } from "@conversation-export/runtime";
import type { Connection } from "../kafkajs/connection.ts";
import type { BusMessage, PartitionOffset, TopicPartition } from "../message.ts";

/**
 * Messages of one partition, in order; may be empty. `nextOffset` is what to commit once all are handled,
 * `highWatermark` the end of the partition when fetched.
 */
export type MessageSlice = {
  epoch: number;
  topic: string;
  partition: number;
  messages: readonly BusMessage[];
  nextOffset: number;
  highWatermark: number;
};

/**
 * All taken; all taken and the partition paused; or the first `processed` taken, the rest comes again after
 * `resume`.
 */
export type Taken = "continue" | "pause" | { processed: number; pause: true };

/** Limits of one fetch request, in bytes and milliseconds. */
export type FetchLimits = {
  maxBytesPerPartition: number;
  maxBytes: number;
  minBytes: number;
  maxWaitMs: number;
};

export type ConsumerDeps = Connection & {
  groupId: string;
  topics: readonly string[];
  /**
   * After this time without a heartbeat the group goes on without this member. A rejoin waits half of it for
   * a drain.
   */
  sessionTimeoutMs?: number;
  fetch?: Partial<FetchLimits>;
  metrics?: Metrics;
  /** Synchronous. A throw is a bug and ends in `onCrash`. */
  onMessages(slice: MessageSlice): Taken;
  /** A new epoch: everything uncommitted of the old one comes again, and nothing is paused. */
  onAssigned(assignment: { epoch: number; partitions: readonly TopicPartition[] }): void;
  /** Before every rejoin: finish and commit what is in flight. The join waits; no messages come meanwhile. */
  onRebalancing(): void | Promise<void>;
  /** The consumer is dead and will not come back. */
  onCrash(error: unknown): void;
};

export type Consumer = {
  /**
   * Waits for brokers and topics as long as it takes.
   * @throws ServiceError `bus_start`, `bus_credentials` or `bus_tls` when waiting cannot help, and after
   * `stop`
   */
  start(): Promise<void>;
  /** Leaves the group. Drain and commit before, with everything paused. */
  stop(): Promise<void>;
  /**
   * Commits while `epoch` is current. `fenced`: it is not, the offsets come again.
   * @throws ServiceError `commit`
   */
  commit(epoch: number, offsets: readonly PartitionOffset[]): Promise<"committed" | "fenced">;
  pause(partitions: readonly TopicPartition[]): void;
  resume(partitions: readonly TopicPartition[]): void;
  pausedCount(): number;
  assigned(): readonly TopicPartition[];
  /** A member of the group, perhaps without partitions. */
  isJoined(): boolean;
  /** Date.now() of the loop's last sign of life. A drain and the library's pauses, 30 s, give none. */
  lastTick(): number;
};
