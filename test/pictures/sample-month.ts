import type { ConversationRecord } from "@conversation-export/domain";
import { createRandom, type Random } from "../sample/values/random.ts";
import { conversation, DAY, SECOND } from "../warehouse/records.ts";
import type { TimeRange } from "./fill-sql.ts";

const CLIENT = "acme";
const SEED = "october";
const DAYS = 31;
const START = Date.parse("2026-10-01T00:00:00Z");

/** The month that the sample is about. */
export const MONTH: TimeRange = { from: START, to: START + (DAYS * DAY) / 1_000 - 1_000 };

/** Conversations of a day, Sunday first. */
const WEEK = [64, 128, 121, 117, 113, 108, 72];
/** Two days on which the system for orders was down. */
const OUTAGE = new Set([13, 14]);

type Weighted<T> = readonly (readonly [weight: number, value: T])[];

/** `contained`, `resolved` and `score` (of 5) are what conversations on the topic come to. */
type Topic = {
  readonly label: string;
  readonly contained: number;
  readonly resolved: number;
  readonly score: number;
};

const TOPICS: Weighted<Topic> = [
  [31, { label: "Where is my order", contained: 0.84, resolved: 0.86, score: 4.3 }],
  [19, { label: "Returns and refunds", contained: 0.66, resolved: 0.74, score: 3.9 }],
  [13, { label: "Account and login", contained: 0.79, resolved: 0.81, score: 4.2 }],
  [11, { label: "Change or cancel an order", contained: 0.61, resolved: 0.7, score: 3.7 }],
  [10, { label: "Product questions", contained: 0.82, resolved: 0.78, score: 4.4 }],
  [8, { label: "Payment problems", contained: 0.5, resolved: 0.62, score: 3.3 }],
  [5, { label: "Gift cards and vouchers", contained: 0.75, resolved: 0.77, score: 4.1 }],
  [3, { label: "Store opening hours", contained: 0.93, resolved: 0.9, score: 4.5 }],
];
const PLATFORMS: Weighted<string> = [
  [54, "web"],
  [23, "whatsapp"],
  [14, "ios_sdk"],
  [9, "email"],
];
const LANGUAGES: Weighted<string> = [
  [58, "en"],
  [17, "fr"],
  [12, "es"],
  [9, "de"],
  [4, "pt"],
];
const REASONS: Weighted<string | null> = [
  [34, "end_user_requested"],
  [24, "issue_unresolved"],
  [15, "out_of_scope"],
  [12, "handoff_configured"],
  [6, "knowledge_unavailable"],
  [5, "tool_failed"],
  [4, null],
];
const DESKS: Weighted<string> = [
  [48, "Live chat"],
  [27, "Ticket by e-mail"],
  [16, "Billing team"],
  [9, "Phone callback"],
];

const draw = <T>(random: Random, list: Weighted<T>): T => {
  let left = random.next() * list.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, value] of list) {
    left -= weight;
    if (left < 0) return value;
  }
  throw new RangeError("nothing to draw from");
};

/** A positive number around `middle`, now and then several times as large. */
const drawSeconds = (random: Random, middle: number): number =>
  Math.round(middle * Math.exp(random.next() + random.next() + random.next() - 1.5));

const drawScore = (random: Random, mean: number): number =>
  Math.max(1, Math.min(5, Math.round(mean + (random.next() + random.next() - 1) * 2)));

const drawHandoffs = (random: Random, id: string, begun: number, isOutage: boolean): object[] => {
  const count = random.chance(0.08) ? 2 : 1;
  let at = begun;
  return Array.from({ length: count }, (_, index) => {
    at += drawSeconds(random, isOutage ? 330 : 170) * SECOND;
    return {
      id: `${id}-${index}`,
      handoff_id: `desk-${index}`,
      name: draw(random, DESKS),
      date_created: new Date(at / 1_000).toISOString(),
      outcome_status: random.chance(isOutage ? 0.22 : 0.04) ? "failed" : "succeeded",
      reason_code: isOutage && random.chance(0.5) ? "tool_failed" : draw(random, REASONS),
      reasoning: null,
    };
  });
};

/** A conversation of the day `day`, as ingest would store it. */
const write = (day: number, index: number): ConversationRecord => {
  const random = createRandom(SEED, day, index);
  const id = random.hex(24);
  const isOutage = OUTAGE.has(day);
  const topic = draw(random, TOPICS);
  // People write by day: the mean of three draws lies around noon.
  const hour = (random.next() + random.next() + random.next()) / 3;
  const begun = START * 1_000 + Math.floor((day + hour) * DAY);
  const isEngaged = random.chance(0.91);
  const share = topic.contained * (isOutage ? 0.72 : 0.97 + day * 0.002);
  const isEscalated = isEngaged && !random.chance(share);
  const isResolved = !isEscalated && random.chance(topic.resolved + 0.1);
  const isAnswered = isEngaged && random.chance(0.17);
  const mean = topic.score - (isOutage ? 0.9 : 0) - (isEscalated ? 0.4 : 0);
  return conversation(
    { client: CLIENT, time: begun + DAY, offset: index },
    id,
    begun,
    begun + 1_200 * SECOND,
    {
      chatter_id: random.hex(24),
      platform: draw(random, PLATFORMS),
      language: draw(random, LANGUAGES),
      generated_topic_label: topic.label,
      is_engaged: isEngaged,
      is_escalated: isEscalated,
      is_test_user: random.chance(0.01),
      automated_resolution_classification: isEngaged ? (isResolved ? "Resolved" : "Not Resolved") : null,
      csat: isAnswered ? { score: drawScore(random, mean) } : {},
      handoffs: isEscalated ? drawHandoffs(random, id, begun, isOutage) : [],
    },
  );
};

/** The conversations of one customer in October 2026, the same on every run. */
export const writeMonth = (): ConversationRecord[] =>
  Array.from({ length: DAYS }, (_, day) => {
    const random = createRandom(SEED, day);
    const weekday = new Date(START + (day * DAY) / 1_000).getUTCDay();
    const volume = (WEEK[weekday] ?? 0) * (0.92 + random.next() * 0.16) * (OUTAGE.has(day) ? 1.35 : 1);
    return Array.from({ length: Math.round(volume) }, (_, index) => write(day, index));
  }).flat();
