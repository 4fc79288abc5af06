import type { OutgoingMessage, Producer } from "@conversation-export/bus";
import type { Delivered } from "../reference/index.ts";
import type { BusEvent } from "../sample/index.ts";
import { TOPICS } from "./system.ts";

/** FNV-1a. */
const partitionOf = (key: string, partitions: number): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  }
  return (hash >>> 0) % partitions;
};

export type Place = { readonly topic: string; readonly partition: number; readonly offset: number };

/** Right only for the one producer of empty topics. */
export const createPlaces = (partitions: number): ((event: Pick<BusEvent, "kind" | "key">) => Place) => {
  const next = new Map<string, number>();
  return ({ kind, key }) => {
    const topic = TOPICS[kind];
    const partition = partitionOf(key, partitions);
    const place = `${topic}/${partition}`;
    const offset = next.get(place) ?? 0;
    next.set(place, offset + 1);
    return { topic, partition, offset };
  };
};

export const sendEvents = async (
  deps: { producer: Producer; placeOf: (event: BusEvent) => Place; batch?: number },
  events: Iterable<BusEvent>,
  onSent: (count: number) => void = () => {},
): Promise<void> => {
  const { producer, placeOf, batch = 1_000 } = deps;
  const batches = new Map<string, OutgoingMessage[]>();
  let sent = 0;
  let waiting = 0;

  const sendAll = async (): Promise<void> => {
    await Promise.all([...batches].map(([topic, messages]) => producer.send(topic, messages)));
    batches.clear();
    sent += waiting;
    waiting = 0;
    onSent(sent);
  };

  for (const event of events) {
    const { topic, partition } = placeOf(event);
    const messages = batches.get(topic) ?? [];
    messages.push({ key: event.key, value: event.value, headers: event.headers, partition });
    batches.set(topic, messages);
    waiting += 1;
    if (waiting === batch) await sendAll();
  }
  await sendAll();
};

export type Delivery = {
  /** In a shared system offsets are wrong, but ordered for each record. */
  readonly delivered: Delivered[];
  send(events: Iterable<BusEvent>, onSent?: (count: number) => void): Promise<void>;
};

export const createDelivery = (deps: {
  producer: Producer;
  partitions: number;
  batch?: number;
}): Delivery => {
  const delivered: Delivered[] = [];
  const nextPlace = createPlaces(deps.partitions);
  const placeOf = (event: BusEvent): Place => {
    const place = nextPlace(event);
    delivered.push({ event, ...place, busTime: BigInt(Date.now()) * 1000n });
    return place;
  };
  return {
    delivered,
    send: (events, onSent) => sendEvents({ ...deps, placeOf }, events, () => onSent?.(delivered.length)),
  };
};
