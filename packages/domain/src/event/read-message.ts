import { busPositionOf } from "./bus-position.ts";
import type { BusHeaders } from "./headers.ts";
import { rejected } from "./outcome.ts";
import { type Outcome, processEvent } from "./process-event.ts";
import type { EventType } from "../kinds/record-kinds.ts";

/**
 * A message as consumed. `timestamp` in ms since the epoch, negative: none. `unreadable`: stands for all
 * messages up to `lastOffset`.
 */
export type EventMessage = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly value: Uint8Array | null;
  readonly headers: BusHeaders;
  readonly timestamp: number;
  readonly hasBrokerTime?: boolean;
  readonly unreadable?: { readonly lastOffset: number; readonly why: string };
};

/** Arrival in ms since the epoch: the broker's clock counts, a publisher's only up to `now`. */
const arrivalOf = ({ timestamp, hasBrokerTime }: EventMessage, now: number): number => {
  if (timestamp < 0) return now;
  return hasBrokerTime === true ? timestamp : Math.min(timestamp, now);
};

const SCHEMA_PREFIX_BYTES = 5;

/** Whether Confluent's serialiser has put the id of a schema before the JSON, which has no zero byte. */
export const hasSchemaPrefix = (value: Uint8Array): boolean =>
  value[0] === 0 && value.length >= SCHEMA_PREFIX_BYTES;

/** The value without the id of a schema; it shares the memory. */
export const withoutSchemaPrefix = <Bytes extends Uint8Array>(value: Bytes): Bytes =>
  hasSchemaPrefix(value) ? (value.subarray(SCHEMA_PREFIX_BYTES) as Bytes) : value;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of bytes; undefined when it is no UTF-8. */
const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
};

/**
 * Decodes a message and normalises and renders its event: the record, or why there is none.
 * @param limits.maxTimeAheadMs how much later than its arrival on the bus an event may claim to be
 * @param limits.now milliseconds since the epoch
 */
export const readMessage = (
  message: EventMessage,
  type: EventType,
  limits: { readonly maxTimeAheadMs: number; readonly now: number },
): Outcome => {
  const { value, headers, unreadable } = message;
  if (unreadable !== undefined) {
    const { lastOffset, why } = unreadable;
    return rejected("unreadable_batch", `offsets ${message.offset} to ${lastOffset} cannot be read: ${why}`);
  }
  const text = value === null ? null : textOf(withoutSchemaPrefix(value));
  if (text === undefined) return rejected("invalid_envelope", "the value is not valid UTF-8");
  const latestTime = (arrivalOf(message, limits.now) + limits.maxTimeAheadMs) * 1000;
  return processEvent({ text, headers, position: busPositionOf(message), latestTime }, type);
};
