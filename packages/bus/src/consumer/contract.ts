import type { Metrics } from "@conversation-export/runtime";
import type { Connection } from "../kafkajs/connection.ts";
import type { BusMessage, PartitionOffset, TopicPartition } from "../message.ts";

/** In order, may be empty; `nextOffset`: to commit once all are handled. */
export type MessageSlice = {
  epoch: number;
  topic: string;
  partition: number;
  messages: readonly BusMessage[];
  nextOffset: number;
  highWatermark: number;
};

/** The rest comes again after `resume`. */
export type Taken = "continue" | "pause" | { processed: number; pause: true };

export type ConsumerDeps = Connection & {
  groupId: string;
  topics: readonly string[];
  /** A rejoin waits half of it for a drain. */
  sessionTimeoutMs?: number;
  /** How long a broker collects for an answer. */
  fetch?: { minBytes: number; maxWaitMs: number };
  metrics?: Metrics;
  /** A throw is a bug and ends in `onCrash`. */
  onMessages(slice: MessageSlice): Taken;
  /** What is uncommitted comes again, and nothing is paused. */
  onAssigned(assignment: { epoch: number; partitions: readonly TopicPartition[] }): void;
  /** Finish and commit: the join waits. */
  onRebalancing(): void | Promise<void>;
  onCrash(error: unknown): void;
};

export type Consumer = {
  /** Throws `bus_start`, `bus_credentials` or `bus_tls`. */
  start(): Promise<void>;
  /** Drain and commit before, with everything paused. */
  stop(): Promise<void>;
  /** `fenced`: the offsets come again; throws `commit`. */
  commit(epoch: number, offsets: readonly PartitionOffset[]): Promise<"committed" | "fenced">;
  pause(partitions: readonly TopicPartition[]): void;
  resume(partitions: readonly TopicPartition[]): void;
  pausedCount(): number;
  assigned(): readonly TopicPartition[];
  isJoined(): boolean;
  /** Date.now(); a drain and kafkajs' pauses, 30 s, give none. */
  lastTick(): number;
};
