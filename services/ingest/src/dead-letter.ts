import type { BusMessage, OutgoingMessage } from "@conversation-export/bus";
import type { BusPosition, Rejected } from "@conversation-export/domain";

export type DeadLetter = { readonly source: BusMessage; readonly rejection: Rejected };

/** The dead-letter topic of a source topic. */
export const deadLetterTopic = (topic: string): string => `${topic}.dead-letter`;

const firstText = (header: BusMessage["headers"][string]): string | undefined => {
  const first = Array.isArray(header) ? header[0] : header;
  return first?.toString();
};

const wholeNumber = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
};

/**
 * Where a message counts as standing on the bus: a replayed dead letter keeps the place of its first arrival,
 * so that it cannot win over what was exported behind it.
 */
export const positionOf = (message: BusMessage): BusPosition => {
  // A letter of another topic has no place in this one.
  const topic = firstText(message.headers["dl-topic"]);
  if (topic !== undefined && topic !== message.topic) {
    return { partition: message.partition, offset: message.offset };
  }
  const partition = wholeNumber(firstText(message.headers["dl-partition"]));
  const offset = wholeNumber(firstText(message.headers["dl-offset"]));
  if (partition === undefined || partition > 0xffff || offset === undefined || offset >= 2 ** 48) {
    return { partition: message.partition, offset: message.offset };
  }
  return { partition, offset };
};

/** The instant of a producer's clock, which may be anything. */
const isoTime = (ms: number): string => {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
};

/** The message for the dead-letter topic: payload and key untouched, headers that say why and whence. */
export const toDeadLetter = ({ source, rejection }: DeadLetter, now: Date): OutgoingMessage => {
  const position = positionOf(source);
  return {
    key: source.key,
    value: source.value,
    headers: {
      ...source.headers,
      "dl-reason": rejection.reason,
      "dl-detail": rejection.detail,
      "dl-topic": source.topic,
      "dl-partition": String(position.partition),
      "dl-offset": String(position.offset),
      "dl-key": source.key?.toString("base64") ?? "",
      "dl-time": firstText(source.headers["dl-time"]) ?? isoTime(source.timestamp),
      "dl-rejected-at": now.toISOString(),
      "dl-replays": firstText(source.headers["dl-replays"]) ?? "0",
    },
  };
};

/** The same place and reason without value and original headers, for a letter that is too large to be kept. */
export const withoutPayload = (letter: OutgoingMessage): OutgoingMessage => {
  const own = Object.entries(letter.headers ?? {}).filter(([name]) => name.startsWith("dl-"));
  return { key: letter.key, value: null, headers: { ...Object.fromEntries(own), "dl-payload": "left out" } };
};
