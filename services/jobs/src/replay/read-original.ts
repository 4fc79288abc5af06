import type { BusMessage, DeadLetter, RangeReader } from "@conversation-export/bus";

/** null when Kafka no longer holds it. */
export const readOriginal = async (
  reader: Pick<RangeReader, "bounds" | "read">,
  { topic, arrival, arrivedAt }: Pick<DeadLetter, "topic" | "arrival" | "arrivedAt">,
  signal: AbortSignal,
): Promise<BusMessage | null> => {
  const { partition, offset } = arrival;
  const bounds = (await reader.bounds(topic)).find((entry) => entry.partition === partition);
  if (bounds === undefined || offset < bounds.start || offset >= bounds.end) return null;
  const range = { topic, partition, from: offset, to: offset + 1, signal, onLost: () => {} };
  for await (const [message] of reader.read(range)) {
    // A topic created anew has other messages at the same places.
    const isSame = message !== undefined && message.timestamp === arrivedAt && message.value !== null;
    return isSame ? message : null;
  }
  return null;
};
