import { type BusHeader, type BusHeaders, headerText } from "./headers.ts";
import type { BusPosition } from "./version.ts";

export const REPLAY_HEADERS = ["dl-topic", "dl-partition", "dl-offset", "dl-time", "dl-replays"] as const;

const textOf = (header: BusHeader): string | undefined => {
  const text = headerText(header) ?? "";
  return text === "" ? undefined : text;
};

/** A whole number up to `max`. */
export const numberOf = (header: BusHeader, max: number): number | undefined => {
  const text = textOf(header);
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  const value = Number(text);
  return value <= max ? value : undefined;
};

/** ms; null: none. */
export const instantOf = (header: BusHeader): number | null => {
  const text = textOf(header) ?? "";
  const at = new Date(text);
  // JavaScript parses many other forms.
  return Number.isNaN(at.getTime()) || at.toISOString() !== text ? null : at.getTime();
};

type Placed = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly headers: BusHeaders;
};

/** Of the first arrival. */
export const arrivalIn = (headers: BusHeaders): BusPosition | undefined => {
  const partition = numberOf(headers["dl-partition"], 0xffff);
  const offset = numberOf(headers["dl-offset"], 2 ** 48 - 1);
  return partition === undefined || offset === undefined ? undefined : { partition, offset };
};

const firstPlaceOf = ({ topic, headers }: Placed): BusPosition | undefined =>
  (textOf(headers["dl-topic"]) ?? topic) === topic ? arrivalIn(headers) : undefined;

/** A replayed dead letter keeps its first place, so it cannot win over later exports. */
export const busPositionOf = (message: Placed): BusPosition =>
  firstPlaceOf(message) ?? { partition: message.partition, offset: message.offset };

/** ms; null: unknown. With the place it identifies messages across re-created topics. */
export const arrivalTimeOf = (message: Placed & { readonly timestamp: number }): number | null => {
  const isReplay = firstPlaceOf(message) !== undefined;
  if (isReplay) return instantOf(message.headers["dl-time"]);
  const time = new Date(message.timestamp).getTime();
  return Number.isNaN(time) ? null : time;
};

export const arrivalHeaders = (message: Placed & { readonly timestamp: number }) => {
  const { partition, offset } = busPositionOf(message);
  const arrivedAt = arrivalTimeOf(message);
  return {
    "dl-partition": String(partition),
    "dl-offset": String(offset),
    "dl-time": arrivedAt === null ? "" : new Date(arrivedAt).toISOString(),
  };
};
