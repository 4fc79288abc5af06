import { retry, ServiceError, unlessAborted } from "@conversation-export/runtime";
import type { PartitionBounds } from "./admin.ts";
import {
  createCluster,
  EARLIEST,
  fetchLeaders,
  fetchTopicId,
  LATEST,
  listOffsets,
  READ_COMMITTED,
} from "./kafkajs/cluster.ts";
import { type Connection, connectTo, createKafka } from "./kafkajs/connection.ts";
import { busError, mayPass, protocolErrorType } from "./kafkajs/errors.ts";
import type { FetchedPartition } from "./kafkajs/fetch-response.ts";
import type { BusMessage, PartitionOffset } from "./message.ts";
import { createDamageCheck } from "./records/damage-check.ts";
import { toOffset } from "./records/offset.ts";
import { readSlices } from "./records/record-slices.ts";

/** The messages of one partition with `from` <= offset < `to`. */
export type BusRange = {
  topic: string;
  /** With it nothing else is read of a topic of the same name that is created anew. */
  topicId?: string | null;
  partition: number;
  from: number;
  to: number;
};

/** Reads ranges of a topic without a consumer group, so reading changes nothing on the bus. */
export type RangeReader = {
  /** Waits for the brokers as long as it takes; rejects when waiting cannot help, and after `stop`. */
  start(): Promise<void>;
  /** Ends all reading with an error. */
  stop(): Promise<void>;
  /**
   * Every partition by number. `end` lies behind the last message that can be read, so before the first open
   * transaction.
   * @throws ServiceError `bus_range`
   */
  bounds(topic: string): Promise<PartitionBounds[]>;
  /**
   * Differs from that of a topic of the same name that was deleted; null: the brokers give none. Ask before the offsets
   * that are to count in it.
   * @throws ServiceError `bus_range`
   */
  topicId(topic: string): Promise<string | null>;
  /**
   * For every partition the first offset at or after this bus time (ms), or `end`. With `CreateTime`, earlier
   * times may follow.
   * @throws ServiceError `bus_range`
   */
  offsetsAt(topic: string, timestampMs: number): Promise<PartitionOffset[]>;
  /**
   * The messages of a range in order, never an empty list, without control records and aborted messages.
   * Waits up to a minute for brokers, without limit for an open transaction.
   * @throws the signal's reason, and ServiceError `topic_created_anew`, `range_lost` when retention deleted a
   * part and `onLost` is absent, `range_beyond_end`, `bus_range` otherwise
   */
  read(range: ReadRange): AsyncIterable<BusMessage[]>;
};

type ReadRange = BusRange & { signal?: AbortSignal; onLost?: (lost: BusRange) => void };

const MAX_BYTES = 4 * 1024 * 1024;
/** kafkajs gives a fetch up soon after this time, so it must cover a slow disk of a broker, too. */
const MAX_WAIT_MS = 5000;
const DEADLINE_MS = 60_000;
const SLICE_MESSAGES = 4096;

export const createRangeReader = (deps: Connection): RangeReader => {
  const { log } = deps;
  const abort = new AbortController();
  const cluster = createCluster(createKafka(deps));

  /** Asks the brokers, again while they may answer later. */
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
    ask(`the brokers do not give the bounds of ${topic}`, signal, async () => {
      const leaders = await fetchLeaders(cluster, topic);
      const starts = await listOffsets(cluster, topic, leaders, EARLIEST, READ_COMMITTED);
      const ends = await listOffsets(cluster, topic, leaders, LATEST, READ_COMMITTED);
      return Array.from(leaders.keys(), (partition) => ({
        partition,
        start: starts.get(partition) ?? 0,
        end: ends.get(partition) ?? 0,
      }));
    });

  const fetch = async (
    where: BusRange,
    nodeId: number,
    position: number,
  ): Promise<FetchedPartition | undefined> => {
    const { topic, partition } = where;
    const broker = await cluster.findBroker({ nodeId });
    const { responses } = await broker.fetch({
      isolationLevel: READ_COMMITTED,
      maxWaitTime: MAX_WAIT_MS,
      minBytes: 1,
      maxBytes: MAX_BYTES,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(position), maxBytes: MAX_BYTES }] }],
    });
    return responses
      .find(({ topicName }) => topicName === topic)
      ?.partitions.find((entry) => entry.partition === partition);
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

    const fetchNext = (): Promise<FetchedPartition | "out of range" | undefined> =>
      ask(`cannot read ${place}`, signal, async () => {
        try {
          leader ??= (await fetchLeaders(cluster, topic)).get(partition);
          if (leader === undefined)
            throw new ServiceError("bus_range", `cannot read ${place}: there is no ${place}`);
          return await fetch(where, leader, position);
        } catch (error) {
          if (protocolErrorType(error) === "OFFSET_OUT_OF_RANGE") return "out of range";
          // Another broker may lead by now.
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
      // A damaged batch is fetched again.
      if (position > first || fetched.messages.length > 0) continue;
      const end = toOffset(fetched.highWatermark);
      if (position >= end) throw beyondEnd(place, end, to);
      // Below the stable end a broker gives at least one batch, unless the last ones were compacted away.
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
        // Ends are asked for first, so messages that arrive in between lie behind them.
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
  // Retryable: a new leader may not know the end yet that the old one has told.
  new ServiceError("range_beyond_end", `${place} ends at ${end}, before ${to}`, { retryable: true });
