import { busPositionOf } from "./bus-position.ts";
import type { BusHeaders } from "./headers.ts";
import { rejected } from "./outcome.ts";
import { type Outcome, processEvent } from "./process-event.ts";
import type { EventType } from "../kinds/record-kinds.ts";

/** `timestamp`: ms, negative: none. `unreadable`: for all messages up to `lastOffset`. */
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

/** ms; a publisher's clock counts only up to `now`. */
const arrivalOf = ({ timestamp, hasBrokerTime }: EventMessage, now: number): number => {
  if (timestamp < 0) return now;
  return hasBrokerTime === true ? timestamp : Math.min(timestamp, now);
};

const SCHEMA_PREFIX_BYTES = 5;

/** Confluent's serialiser puts a zero byte and a schema id first. */
export const hasSchemaPrefix = (value: Uint8Array): boolean =>
  value[0] === 0 && value.length >= SCHEMA_PREFIX_BYTES;

export const withoutSchemaPrefix = <Bytes extends Uint8Array>(value: Bytes): Bytes =>
  hasSchemaPrefix(value) ? (value.subarray(SCHEMA_PREFIX_BYTES) as Bytes) : value;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
};

/** `maxTimeAheadMs`: of an event's time after its arrival. `now`: ms. */
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
