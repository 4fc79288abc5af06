import type { BusHeader, BusHeaders } from "./envelope.ts";
import type { BusPosition } from "./version.ts";

const firstText = (header: BusHeader): string | undefined => {
  const first = Array.isArray(header) ? (header as readonly BusHeader[])[0] : header;
  const text = first?.toString() ?? "";
  return text === "" ? undefined : text;
};

const wholeNumber = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
};

/**
 * The place of a message on the bus. A replayed dead letter keeps that of its first arrival, from its `dl-`
 * headers, so that it cannot win over later exports.
 */
export const busPositionOf = (message: {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly headers: BusHeaders;
}): BusPosition => {
  const { headers } = message;
  const own = { partition: message.partition, offset: message.offset };
  // A letter of another topic has no place in this one.
  const topic = firstText(headers["dl-topic"]);
  if (topic !== undefined && topic !== message.topic) return own;
  const partition = wholeNumber(firstText(headers["dl-partition"]));
  const offset = wholeNumber(firstText(headers["dl-offset"]));
  if (partition === undefined || partition > 0xffff || offset === undefined || offset >= 2 ** 48) return own;
  return { partition, offset };
};
