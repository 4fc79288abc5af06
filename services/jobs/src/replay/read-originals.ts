import type { BusMessage, DeadLetter, RangeReader } from "@conversation-export/bus";

type Original = Pick<DeadLetter, "topic" | "arrival" | "arrivedAt" | "lastOffset">;

/** A topic created anew has other messages at the same places. */
const isOther = ({ timestamp }: BusMessage, { arrivedAt, lastOffset }: Original): boolean => {
  if (lastOffset === null) return timestamp !== arrivedAt;
  // The latest of its batch; negative: not known.
  return arrivedAt !== null && arrivedAt >= 0 && timestamp > arrivedAt;
};

export const isOfBatch = (message: BusMessage, original: Original): boolean => {
  const { topic, arrival, lastOffset } = original;
  if (lastOffset === null || message.topic !== topic || message.partition !== arrival.partition) return false;
  return message.offset >= arrival.offset && message.offset <= lastOffset && !isOther(message, original);
};

/** false: Kafka no longer holds all, or some cannot be read. */
export const readOriginals = async (
  reader: Pick<RangeReader, "bounds" | "read">,
  original: Original,
  options: { readonly signal: AbortSignal; onMessage(message: BusMessage): Promise<void> },
): Promise<boolean> => {
  const { topic, arrival, lastOffset } = original;
  const { partition, offset: from } = arrival;
  const to = (lastOffset ?? from) + 1;
  const bounds = (await reader.bounds(topic)).find((entry) => entry.partition === partition);
  if (bounds === undefined || from < bounds.start || to > bounds.end) return false;
  let read = 0;
  let isLost = false;
  const onLost = (): void => {
    isLost = true;
  };
  for await (const messages of reader.read({
    topic,
    partition,
    from,
    to,
    signal: options.signal,
    onLost,
  })) {
    for (const message of messages) {
      if (isOther(message, original) || message.unreadable !== undefined) return false;
      // Ingest ignores it.
      if (message.value === null) continue;
      await options.onMessage(message);
      read += 1;
    }
  }
  return read > 0 && !isLost;
};
