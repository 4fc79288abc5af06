import { type BusHeader, type BusHeaders, headerText } from "./headers.ts";
import type { BusPosition } from "./version.ts";

/** The headers that tell the place of a replayed dead letter. */
export const PLACE_HEADERS = ["dl-topic", "dl-partition", "dl-offset"] as const;

const textOf = (header: BusHeader): string | undefined => {
  const text = headerText(header) ?? "";
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
  const topic = textOf(headers["dl-topic"]);
  if (topic !== undefined && topic !== message.topic) return own;
  const partition = wholeNumber(textOf(headers["dl-partition"]));
  const offset = wholeNumber(textOf(headers["dl-offset"]));
  if (partition === undefined || partition > 0xffff || offset === undefined || offset >= 2 ** 48) return own;
  return { partition, offset };
};
