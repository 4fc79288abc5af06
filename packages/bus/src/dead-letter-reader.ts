import { type DeadLetterFacts, deadLetterOf, deadLetterTopic } from "@conversation-export/domain";
import type { BusMessage, TopicPartition } from "./message.ts";
import type { BusRange, RangeReader } from "./range-reader.ts";

/** One dead letter: the facts in its headers and the message itself. */
export type DeadLetter = DeadLetterFacts & {
  /** Its position in the dead-letter topic of `topic`. */
  readonly place: { readonly partition: number; readonly offset: number };
  readonly message: BusMessage;
};

/**
 * Conditions that are left out hold for every dead letter. Instants are those of the refusal, ms since the epoch.
 */
export type DeadLetterFilter = {
  readonly reasons?: readonly string[] | null;
  readonly from?: number | null;
  /** Before this instant. */
  readonly to?: number | null;
};

/**
 * Dead letters by the topic from which they came.
 * @throws the errors of `RangeReader`
 */
export type DeadLetterReader = {
  /** The ranges in which fitting dead letters may lie now, one for each partition that has some. */
  ranges(topic: string, filter?: DeadLetterFilter): Promise<BusRange[]>;
  /**
   * All dead letters of a range, some at a time. `unreadable` counts other messages, `next` is the offset
   * behind them.
   */
  read(
    range: BusRange,
    signal?: AbortSignal,
  ): AsyncIterable<{ deadLetters: DeadLetter[]; unreadable: number; next: number }>;
  /** The fitting dead letters that are there at the call, partition by partition. */
  list(topic: string, filter?: DeadLetterFilter, signal?: AbortSignal): AsyncIterable<DeadLetter>;
  /** The dead letter at a position of the dead-letter topic; null when there is none. */
  find(
    topic: string,
    place: { readonly partition: number; readonly offset: number },
    signal?: AbortSignal,
  ): Promise<DeadLetter | null>;
};

/** A dead letter reaches the bus after its refusal, and the clock of the bus may differ. */
const CLOCK_MARGIN_MS = 60_000;

/** True if the dead letter meets all conditions; one without an instant meets none by time. */
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
  // Ingest writes the name of this topic into its dead letters.
  if (facts === undefined || facts.topic !== topic) return undefined;
  return { ...facts, place: { partition: message.partition, offset: message.offset }, message };
};

const lostIsGone = (): void => {};

export const createDeadLetterReader = (deps: {
  /** Started and stopped by the caller. */
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
