import type { BusMessage, RangeReader } from "@conversation-export/bus";
import type { EventType } from "@conversation-export/domain";
import type { BackfillWindow } from "@conversation-export/queue";
import { ServiceError } from "@conversation-export/runtime";
import { cutRanges } from "../backfill/cut-range.ts";
import type { EventSource, KafkaPart, SourceBatch, SourceProblem } from "./event-source.ts";

const PART_MESSAGES = 50_000;
const BATCH_MESSAGES = 5_000;

const wrongWindow = (message: string): ServiceError => new ServiceError("backfill_window", message);

/** Windows by event reach to the end, since events may be late. */
export function createKafkaSource(deps: {
  readonly reader: RangeReader;
  /** By topic. */
  readonly types: ReadonlyMap<string, EventType>;
  /** true: the broker sets them. */
  readonly growsInTime: (topic: string) => Promise<boolean>;
  /** An event may claim to be this much later than its arrival. */
  readonly maxTimeAheadMs: number;
}): EventSource {
  const { reader, types, growsInTime, maxTimeAheadMs } = deps;

  async function whole(topic: string): Promise<KafkaPart[]> {
    const topicId = await reader.topicId(topic);
    const bounds = await reader.bounds(topic);
    return bounds.map(({ partition, start, end }) => ({
      kind: "kafka",
      topic,
      topicId,
      partition,
      from: start,
      to: end,
      busTime: null,
    }));
  }

  async function offsetsAt(topic: string, timestampMs: number): Promise<ReadonlyMap<number, number>> {
    const found = await reader.offsetsAt(topic, timestampMs);
    return new Map(found.map(({ partition, offset }) => [partition, offset]));
  }

  async function startingAt(topic: string, timestampMs: number): Promise<KafkaPart[]> {
    // First, since it asks for the topic's id.
    const ranges = await whole(topic);
    const starts = await offsetsAt(topic, timestampMs);
    return ranges.map((range) => ({
      ...range,
      from: Math.max(range.from, starts.get(range.partition) ?? 0),
    }));
  }

  async function byBusTime(topic: string, from: number, to: number): Promise<KafkaPart[]> {
    const ranges = (await startingAt(topic, from)).map((range) => ({ ...range, busTime: { from, to } }));
    if (!(await growsInTime(topic))) return ranges;
    const ends = await offsetsAt(topic, to);
    return ranges.map((range) => ({
      ...range,
      to: Math.min(range.to, ends.get(range.partition) ?? range.to),
    }));
  }

  async function byOffsets(window: Extract<BackfillWindow, { by: "offsets" }>): Promise<KafkaPart[]> {
    const { topic } = window;
    if (!types.has(topic)) {
      throw wrongWindow(`${topic} is not a topic of ingest; those are ${[...types.keys()].join(", ")}`);
    }
    const partitions = new Map((await whole(topic)).map((range) => [range.partition, range]));
    return window.ranges.map(({ partition, from, to }) => {
      const there = partitions.get(partition);
      if (there === undefined) throw wrongWindow(`${topic} has no partition ${partition}`);
      // Reading reports messages that are gone.
      return { ...there, from, to: Math.min(to, there.to) };
    });
  }

  async function rangesOf(window: BackfillWindow | null): Promise<KafkaPart[]> {
    if (window?.by === "offsets") return byOffsets(window);
    const ranges = await Promise.all(
      [...types.keys()].map((topic) => {
        if (window === null) return whole(topic);
        const [from, to] = [Date.parse(window.from), Date.parse(window.to)];
        if (window.by === "upload") return byBusTime(topic, from, to);
        return startingAt(topic, Math.max(0, from - maxTimeAheadMs));
      }),
    );
    return ranges.flat();
  }

  async function* read(part: KafkaPart, signal: AbortSignal): AsyncGenerator<SourceBatch> {
    const { topic, topicId, partition, from, to, busTime } = part;
    const type = types.get(topic);
    if (type === undefined) throw wrongWindow(`${topic} is no longer a topic of ingest`);
    const problems: SourceProblem[] = [];
    const onLost = (lost: { from: number; to: number }): void => {
      problems.push({
        place: `${topic}/${partition}/${lost.from}`,
        reason: "not_on_the_bus",
        detail: `retention has deleted the messages up to ${lost.to}`,
      });
    };
    const isWanted = ({ timestamp }: BusMessage): boolean =>
      busTime === null || (timestamp >= busTime.from && timestamp < busTime.to);
    for await (const messages of reader.read({ topic, topicId, partition, from, to, signal, onLost })) {
      const events = messages.filter(isWanted).map((message) => ({ type, message }));
      for (let at = 0; at < events.length; at += BATCH_MESSAGES) {
        yield { events: events.slice(at, at + BATCH_MESSAGES), problems: problems.splice(0) };
      }
    }
    if (problems.length > 0) yield { events: [], problems };
  }

  return {
    parts: async (window, signal) => {
      const ranges = await rangesOf(window);
      signal.throwIfAborted();
      return cutRanges(ranges, PART_MESSAGES);
    },
    read: (part, signal) => {
      if (part.kind !== "kafka") throw new TypeError("not a part of the bus");
      return read(part, signal);
    },
  };
}
