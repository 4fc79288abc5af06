import type { BusMessage, Letter, RangeReader } from "@conversation-export/bus";

/**
 * The message of which a letter is only a note, from the place where it came first; null when the bus does not hold it
 * any more, or holds another one there.
 */
export const readOriginal = async (
  reader: Pick<RangeReader, "bounds" | "read">,
  { topic, arrival, arrivedAt }: Pick<Letter, "topic" | "arrival" | "arrivedAt">,
  signal: AbortSignal,
): Promise<BusMessage | null> => {
  const { partition, offset } = arrival;
  const bounds = (await reader.bounds(topic)).find((entry) => entry.partition === partition);
  if (bounds === undefined || offset < bounds.start || offset >= bounds.end) return null;
  const range = { topic, partition, from: offset, to: offset + 1, signal, onLost: () => {} };
  for await (const [message] of reader.read(range)) {
    // A topic that was made anew has other messages at the same places.
    const isSame = message !== undefined && message.timestamp === arrivedAt && message.value !== null;
    return isSame ? message : null;
  }
  return null;
};
