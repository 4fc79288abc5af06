import { setTimeout as sleep } from "node:timers/promises";
import type { Producer } from "@conversation-export/bus";
import { walkPages } from "../../compare/walk.ts";
import { handMade } from "../../sample/hand-made.ts";
import type { BusEvent } from "../../sample/index.ts";
import { createRandom, type Random } from "../../sample/values/random.ts";
import { createPlaces, sendEvents } from "../../system/deliver.ts";

const TICK_MS = 250;
const TURN_MS = 1_000;
/** Conversations of a tick: between none and twice as many, in waves. */
const CONVERSATIONS = 4;
const MESSAGES = 4;
const WAVE_MS = 60_000;

const eventsOf = (random: Random, client: string, now: number): BusEvent[] => {
  const time = new Date(now - random.int(300)).toISOString();
  const id = random.hex(24);
  const chatter = random.hex(24);
  const conversation = handMade({
    kind: "conversation",
    client,
    id,
    time,
    data: {
      _id: id,
      date_created: time,
      date_updated: time,
      chatter_id: chatter,
      platform: random.pick(["web", "whatsapp", "ios_sdk"]),
      is_engaged: true,
      is_escalated: false,
      inquiry_summary: "The customer asked where the order is and when it will arrive.",
    },
  });
  const messages = Array.from({ length: MESSAGES }, (_, index) => {
    const messageId = `${id}-${index}`;
    const data = {
      _id: messageId,
      date_created: time,
      conversation_id: id,
      chatter_id: chatter,
      message_data: {
        _type: "text",
        body: "Where is my order?",
        has_variables: false,
        reviewable_message: true,
      },
    };
    return handMade({ kind: "message", client, id: messageId, time, data });
  });
  return [conversation, ...messages];
};

export type TrafficDeps = {
  readonly producer: Producer;
  readonly partitions: number;
  /** The base of the interface, and a key for each client. */
  readonly apiUrl: string;
  readonly keys: ReadonlyMap<string, string>;
  readonly seed: string;
  /** Told that a customer's request failed; the customer asks again after a turn. May throw. */
  readonly onFailure: (error: unknown) => void;
  /** Whether nothing is sent now. */
  readonly isPaused: () => boolean;
};

/** Sends new conversations of all clients at a steady pace, and reads them as customers do, until `until` (ms). */
export const runTraffic = async (deps: TrafficDeps, until: number): Promise<void> => {
  const { producer, keys, apiUrl, onFailure, isPaused } = deps;
  const placeOf = createPlaces(deps.partitions);
  const random = createRandom(deps.seed);
  const clients = [...keys.keys()];

  const send = async (): Promise<void> => {
    while (Date.now() < until) {
      const now = Date.now();
      if (isPaused()) {
        await sleep(TICK_MS);
        continue;
      }
      const wave = 1 + 0.5 * Math.sin((2 * Math.PI * now) / WAVE_MS);
      const count = Math.round(CONVERSATIONS * wave * 2 * random.next());
      const events = Array.from({ length: count }, () => eventsOf(random, random.pick(clients), now)).flat();
      await sendEvents({ producer, placeOf }, events);
      await sleep(Math.max(0, now + TICK_MS - Date.now()));
    }
  };

  const readSince = async (since: number, key: string): Promise<void> => {
    const from = new Date(since).toISOString();
    for (const path of [
      `conversations?updated_since=${from}&page_size=100`,
      `messages?created_since=${from}&page_size=500`,
    ])
      for await (const _ of walkPages(`${apiUrl}/v2/export/${path}`, key)) if (Date.now() > until) return;
  };

  const read = async (key: string): Promise<void> => {
    for (let since = Date.now() - 60_000; Date.now() < until; since = Date.now() - 30_000) {
      await readSince(since, key).catch(onFailure);
      await sleep(TURN_MS);
    }
  };

  await Promise.all([send(), ...[...keys.values()].map(read)]);
};
