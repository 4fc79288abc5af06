import type { Consumer, MessageSlice, Taken, TopicPartition } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { Metrics } from "@conversation-export/runtime";
import { type BufferBudget, createBufferBudget } from "./batch/buffer-budget.ts";
import { createLane, type Lane, type LaneDeps } from "./lane.ts";

export type Pipeline = {
  onMessages(slice: MessageSlice): Taken;
  onAssigned(assignment: { epoch: number; partitions: readonly TopicPartition[] }): void;
  onRebalancing(): Promise<void>;
  drain(): Promise<void>;
  isDraining(): boolean;
  /** The messages come again. */
  abort(): void;
};

/** The consumer is built later, with these handlers. */
export const createPipeline = (
  deps: Omit<LaneDeps, "topic" | "type" | "budget" | "commit"> & {
    readonly types: ReadonlyMap<string, EventType>;
    readonly bufferMaxBytes: number;
    readonly consumer: () => Consumer;
    readonly registry: Metrics;
  },
): Pipeline => {
  const { types, consumer, log, now } = deps;
  let draining = false;
  let paused: TopicPartition[] = [];

  const budget: BufferBudget = createBufferBudget({
    maxBytes: deps.bufferMaxBytes,
    onRoom: () => {
      if (draining) return;
      const waiting = paused;
      paused = [];
      consumer().resume(waiting);
    },
  });

  const lanes = new Map<string, Lane>();
  for (const [topic, type] of types) {
    const commit: Consumer["commit"] = (epoch, offsets) => consumer().commit(epoch, offsets);
    lanes.set(topic, createLane({ ...deps, topic, type, budget, commit }));
  }

  const oldestSeconds = (): number => {
    const ages = [...lanes.values()].map((lane) => lane.oldestAt()).filter((at) => at !== null);
    return ages.length === 0 ? 0 : (now() - Math.min(...ages)) / 1000;
  };
  deps.registry.gauge(
    "conversation_export_ingest_buffered_bytes",
    "Bytes read and not settled",
    [],
    (gauge) => gauge.set(budget.used()),
  );
  deps.registry.gauge(
    "conversation_export_ingest_oldest_unflushed_age_seconds",
    "Age of the oldest unsettled record",
    [],
    (gauge) => gauge.set(oldestSeconds()),
  );
  deps.registry.gauge(
    "conversation_export_ingest_paused_partitions",
    "Partitions that wait for room, or for a broker that cannot read them",
    [],
    (gauge) => gauge.set(consumer().pausedCount()),
  );

  const drainLanes = async (): Promise<void> => {
    await Promise.all([...lanes.values()].map((lane) => lane.drain()));
  };

  return {
    onMessages: (slice) => {
      const lane = lanes.get(slice.topic);
      if (lane === undefined) throw new Error(`no lane for topic ${slice.topic}`);
      if (draining) return { processed: 0, pause: true };
      const processed = lane.take(slice);
      if (processed === slice.messages.length) return "continue";
      paused.push({ topic: slice.topic, partition: slice.partition });
      return { processed, pause: true };
    },
    onAssigned: ({ epoch, partitions }) => {
      paused = [];
      for (const lane of lanes.values()) lane.fence(epoch);
      log.info({ epoch, partitions: partitions.length }, "partitions assigned");
    },
    onRebalancing: async () => {
      log.info("rebalance: drain");
      await drainLanes();
    },
    drain: async () => {
      draining = true;
      await drainLanes();
    },
    isDraining: () => draining,
    abort: () => {
      for (const lane of lanes.values()) lane.abort();
    },
  };
};
