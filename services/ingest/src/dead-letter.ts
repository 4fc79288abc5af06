import type { BusMessage, OutgoingMessage } from "@conversation-export/bus";
import { busPositionOf, type Rejected } from "@conversation-export/domain";

export type DeadLetter = {
  readonly source: BusMessage;
  readonly rejection: Rejected;
  /** In the place of those of the message. */
  readonly headers?: Readonly<Record<string, string>>;
};

const firstText = (header: BusMessage["headers"][string]): string | undefined => {
  const first = Array.isArray(header) ? header[0] : header;
  return first?.toString();
};

/** The instant of a producer's clock, which may be anything. */
const isoTime = (ms: number): string => {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
};

/** The message for the dead-letter topic: payload and key untouched, headers that say why and whence. */
export const toDeadLetter = ({ source, rejection, headers }: DeadLetter, now: Date): OutgoingMessage => {
  const position = busPositionOf(source);
  return {
    key: source.key,
    value: source.value,
    headers: {
      ...source.headers,
      ...headers,
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
