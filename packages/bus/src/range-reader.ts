import { retry, ServiceError, unlessAborted } from "@conversation-export/runtime";
import {
  createCluster,
  fetchBounds,
  fetchLeaders,
  fetchTopicId,
  LATEST,
  listOffsets,
  READ_COMMITTED,
} from "./kafkajs/cluster.ts";
import { type Connection, connectTo, createKafka } from "./kafkajs/connection.ts";
import { busError, mayPass, protocolErrorType } from "./kafkajs/errors.ts";
import { type FetchedPartition, isPassedError, type PassedBatch } from "./kafkajs/fetch-response.ts";
import type { BusMessage, PartitionBounds, PartitionOffset } from "./message.ts";
import { createDamageCheck } from "./records/damage-check.ts";
import { toOffset } from "./records/offset.ts";
import { readSlices } from "./records/record-slices.ts";

/** `from` <= offset < `to` */
export type BusRange = {
  topic: string;
  /** With it, a new topic of the same name is not read. */
  topicId?: string | null;
  partition: number;
  from: number;
  to: number;
};

/** Without a group: reading changes nothing on the bus. */
export type RangeReader = {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** `end`: before the first open transaction; throws `bus_range`. */
  bounds(topic: string): Promise<PartitionBounds[]>;
  /** Ask before the offsets that are to count in it. */
  topicId(topic: string): Promise<string | null>;
  /** With `CreateTime`, earlier times may follow. */
  offsetsAt(topic: string, timestampMs: number): Promise<PartitionOffset[]>;
  /**
   * Never an empty list; waits without limit for an open transaction. Throws `topic_created_anew`, `range_lost`
   * without `onLost`, `range_beyond_end`, `bus_range`.
   */
  read(range: ReadRange): AsyncIterable<BusMessage[]>;
};

type ReadRange = BusRange & { signal?: AbortSignal; onLost?: (lost: BusRange) => void };

type Fetched = FetchedPartition & { readonly messages: readonly PassedBatch[] };

const MAX_BYTES = 4 * 1024 * 1024;
/** kafkajs gives up soon after it; a broker's disk may be slow. */
const MAX_WAIT_MS = 5000;
const DEADLINE_MS = 60_000;
const SLICE_MESSAGES = 4096;

export const createRangeReader = (deps: Connection): RangeReader => {
  const { log } = deps;
  const abort = new AbortController();
  const cluster = createCluster(createKafka(deps));

  const ask = async <T>(what: string, signal: AbortSignal, question: () => Promise<T>): Promise<T> => {
    try {
      return await retry(() => unlessAborted(question(), signal), {
        signal,
        deadlineMs: DEADLINE_MS,
        retryable: mayPass,
        onRetry: (error, attempt) => log.debug({ attempt, error: String(error) }, "asking Kafka again"),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof ServiceError ? error : busError("bus_range", what, error);
    }
  };

  const bounds = (topic: string, signal: AbortSignal): Promise<PartitionBounds[]> =>
    ask(`the brokers do not give the bounds of ${topic}`, signal, async () =>
      fetchBounds(cluster, topic, await fetchLeaders(cluster, topic), READ_COMMITTED),
    );

  const fetch = async (where: BusRange, nodeId: number, position: number): Promise<Fetched | undefined> => {
    const { topic, partition } = where;
    const broker = await cluster.findBroker({ nodeId });
    const { responses } = await broker.fetch({
      isolationLevel: READ_COMMITTED,
      maxWaitTime: MAX_WAIT_MS,
      minBytes: 1,
      maxBytes: MAX_BYTES,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(position), maxBytes: MAX_BYTES }] }],
    });
    const fetched = responses
      .find(({ topicName }) => topicName === topic)
      ?.partitions.find((entry) => entry.partition === partition);
    if (fetched === undefined) return undefined;
    const { messages } = fetched;
    if (isPassedError(messages)) throw messages[0].error;
    return { ...fetched, messages };
  };

  const topicIdOf = (topic: string, signal: AbortSignal): Promise<string | null> =>
    ask(`the brokers do not give the id of ${topic}`, signal, async () =>
      fetchTopicId(cluster, topic, await fetchLeaders(cluster, topic)),
    );

  const requireSame = async ({ topic, topicId }: BusRange, signal: AbortSignal): Promise<void> => {
    if (topicId == null) return;
    const now = await topicIdOf(topic, signal);
    if (now !== null && now !== topicId) {
      throw new ServiceError("topic_created_anew", `${topic} was deleted and created anew: start again`);
    }
  };

  async function* read(range: ReadRange): AsyncGenerator<BusMessage[]> {
    const signal = range.signal === undefined ? abort.signal : AbortSignal.any([abort.signal, range.signal]);
    await requireSame(range, signal);
    yield* readOffsets(range, signal);
    await requireSame(range, signal);
  }

  async function* readOffsets(range: ReadRange, signal: AbortSignal): AsyncGenerator<BusMessage[]> {
    const { topic, partition, to, onLost } = range;
    const where: BusRange = { topic, partition, from: range.from, to };
    const place = `${topic}/${partition}`;
    const isLasting = createDamageCheck({ log });
    let position = range.from;
    let leader: number | undefined;

    const fetchNext = (): Promise<Fetched | "out of range" | undefined> =>
      ask(`cannot read ${place}`, signal, async () => {
        try {
          leader ??= (await fetchLeaders(cluster, topic)).get(partition);
          if (leader === undefined)
            throw new ServiceError("bus_range", `cannot read ${place}: there is no ${place}`);
          return await fetch(where, leader, position);
        } catch (error) {
          if (protocolErrorType(error) === "OFFSET_OUT_OF_RANGE") return "out of range";
          leader = undefined;
          throw error;
        }
      });

    while (position < to) {
      signal.throwIfAborted();
      const fetched = await fetchNext();
      if (fetched === undefined) continue;
      if (fetched === "out of range") {
        const start = (await bounds(topic, signal)).find((entry) => entry.partition === partition)?.start;
        if (start === undefined || start <= position) throw beyondEnd(place, position, to);
        const lost = { ...where, from: position, to: Math.min(start, to) };
        if (onLost === undefined) {
          throw new ServiceError(
            "range_lost",
            `retention has deleted ${place} from ${lost.from} to ${lost.to}`,
          );
        }
        onLost(lost);
        position = lost.to;
        continue;
      }
      const first = position;
      const slices = readSlices(fetched.messages, {
        where: { topic, partition },
        from: first,
        size: () => SLICE_MESSAGES,
        isLasting,
      });
      for await (const { messages, nextOffset } of slices) {
        const wanted = messages.filter(({ offset }) => offset < to);
        if (wanted.length > 0) yield wanted;
        position = nextOffset;
        if (position >= to) return;
      }
      if (position > first || fetched.messages.length > 0) continue;
      const end = toOffset(fetched.highWatermark);
      if (position >= end) throw beyondEnd(place, end, to);
      // Below the stable end only compacted batches are missing.
      if (position < toOffset(fetched.lastStableOffset)) position += 1;
    }
  }

  return {
    start: () => connectTo(cluster, "range reader", abort.signal, log),
    stop: async () => {
      abort.abort(new ServiceError("bus_range", "the range reader is stopped", { retryable: true }));
      await cluster.disconnect();
    },
    bounds: (topic) => bounds(topic, abort.signal),
    topicId: (topic) => topicIdOf(topic, abort.signal),
    offsetsAt: (topic, timestampMs) =>
      ask(`the brokers do not give offsets of ${topic}`, abort.signal, async () => {
        const leaders = await fetchLeaders(cluster, topic);
        // Ends first: later messages lie behind them.
        const ends = await listOffsets(cluster, topic, leaders, LATEST, READ_COMMITTED);
        const offsets = await listOffsets(cluster, topic, leaders, timestampMs, READ_COMMITTED);
        return Array.from(leaders.keys(), (partition) => {
          const [offset = -1, end = 0] = [offsets.get(partition), ends.get(partition)];
          return { topic, partition, offset: offset < 0 ? end : offset };
        });
      }),
    read,
  };
};

const beyondEnd = (place: string, end: number, to: number): ServiceError =>
  // A new leader may not know the end yet.
  new ServiceError("range_beyond_end", `${place} ends at ${end}, before ${to}`, { retryable: true });
