import { type DeadLetterFacts, deadLetterOf, deadLetterTopic } from "@conversation-export/domain";
import type { BusMessage, TopicPartition } from "./message.ts";
import type { BusRange, RangeReader } from "./range-reader.ts";

export type DeadLetter = DeadLetterFacts & {
  readonly place: { readonly partition: number; readonly offset: number };
  readonly message: BusMessage;
};

/** Instants of the rejection, ms since the epoch. */
type DeadLetterFilter = {
  readonly reasons?: readonly string[] | null;
  readonly from?: number | null;
  readonly to?: number | null;
};

export type DeadLetterReader = {
  ranges(topic: string, filter?: DeadLetterFilter): Promise<BusRange[]>;
  /** `unreadable` counts other messages; `next`: the offset behind them. */
  read(
    range: BusRange,
    signal?: AbortSignal,
  ): AsyncIterable<{ deadLetters: DeadLetter[]; unreadable: number; next: number }>;
  list(topic: string, filter?: DeadLetterFilter, signal?: AbortSignal): AsyncIterable<DeadLetter>;
  find(
    topic: string,
    place: { readonly partition: number; readonly offset: number },
    signal?: AbortSignal,
  ): Promise<DeadLetter | null>;
};

/** It arrives after its rejection, and the bus's clock may differ. */
const CLOCK_MARGIN_MS = 60_000;

export const deadLetterFits = (
  deadLetter: Pick<DeadLetterFacts, "reason" | "rejectedAt">,
  { reasons, from, to }: DeadLetterFilter,
): boolean => {
  const at = deadLetter.rejectedAt ?? Number.NaN;
  if (reasons != null && !reasons.includes(deadLetter.reason)) return false;
  return (from == null || at >= from) && (to == null || at < to);
};

const toDeadLetter = (topic: string, message: BusMessage): DeadLetter | undefined => {
  const facts = deadLetterOf(message.headers);
  // Ingest writes the source topic into its dead letters.
  if (facts === undefined || facts.topic !== topic) return undefined;
  return { ...facts, place: { partition: message.partition, offset: message.offset }, message };
};

const lostIsGone = (): void => {};

export const createDeadLetterReader = (deps: {
  readonly reader: Pick<RangeReader, "bounds" | "offsetsAt" | "read" | "topicId">;
  readonly topics: readonly string[];
}): DeadLetterReader => {
  const { reader } = deps;
  const sources = new Map(deps.topics.map((topic) => [deadLetterTopic(topic), topic]));
  const sourceOf = ({ topic }: Pick<TopicPartition, "topic">): string => sources.get(topic) ?? topic;

  const ranges = async (topic: string, filter: DeadLetterFilter = {}): Promise<BusRange[]> => {
    const name = deadLetterTopic(topic);
    const { from } = filter;
    const topicId = await reader.topicId(name);
    const starts =
      from == null
        ? new Map<number, number>()
        : new Map(
            (await reader.offsetsAt(name, Math.max(0, from - CLOCK_MARGIN_MS))).map((entry) => [
              entry.partition,
              entry.offset,
            ]),
          );
    return (await reader.bounds(name))
      .map(({ partition, start, end }) => ({
        topic: name,
        topicId,
        partition,
        from: Math.max(start, starts.get(partition) ?? 0),
        to: end,
      }))
      .filter((range) => range.from < range.to);
  };

  async function* read(range: BusRange, signal?: AbortSignal) {
    const topic = sourceOf(range);
    const request = { ...range, onLost: lostIsGone, ...(signal !== undefined && { signal }) };
    for await (const messages of reader.read(request)) {
      const deadLetters = messages.flatMap((message) => toDeadLetter(topic, message) ?? []);
      const next = (messages.at(-1)?.offset ?? range.from - 1) + 1;
      yield { deadLetters, unreadable: messages.length - deadLetters.length, next };
    }
  }

  return {
    ranges,
    read,
    async *list(topic, filter = {}, signal) {
      for (const range of await ranges(topic, filter)) {
        for await (const { deadLetters } of read(range, signal)) {
          for (const deadLetter of deadLetters) if (deadLetterFits(deadLetter, filter)) yield deadLetter;
        }
      }
    },
    find: async (topic, { partition, offset }, signal) => {
      const name = deadLetterTopic(topic);
      const bounds = (await reader.bounds(name)).find((entry) => entry.partition === partition);
      if (bounds === undefined || offset < bounds.start || offset >= bounds.end) return null;
      for await (const { deadLetters } of read(
        { topic: name, partition, from: offset, to: offset + 1 },
        signal,
      )) {
        return deadLetters[0] ?? null;
      }
      return null;
    },
  };
};
