import { handMade } from "./hand-made.ts";
import type { BusEvent, RecordKind } from "./index.ts";
import { createRandom } from "./values/random.ts";

export type Change = {
  readonly event: BusEvent;
  readonly kind: RecordKind;
  readonly id: string;
  /** In ms. */
  readonly time: number;
};

const DAY = 86_400_000;
/** Dates precede the arrival by up to so many ms. */
const DELAY = 20_000;
const CREATED = Date.UTC(2026, 9, 4);

const KINDS = ["conversation", "message", "message", "end_user"] as const;

/** Dates say nothing about the order of arrival. */
export const createRestless = (options: {
  readonly seed: string;
  readonly client: string;
  readonly records: number;
  /** In ms. */
  readonly since?: number;
  readonly now: () => number;
}): (() => Change) => {
  const { client, records, since = CREATED, now } = options;
  const random = createRandom(options.seed, "restless", client);

  const dataOf = (kind: RecordKind, id: string, time: number, created: string): Record<string, unknown> => {
    const updated = new Date(time - random.int(2_000)).toISOString();
    switch (kind) {
      case "conversation":
        return {
          _id: id,
          date_created: created,
          date_updated: updated,
          inquiry_summary: String(time),
          handoffs: Array.from({ length: random.int(3) }, () => ({
            id: `${id}-${random.int(4)}`,
            handoff_id: random.chance(0.5) ? null : `desk-${random.int(2)}`,
            date_created: new Date(since + random.int(5) * DAY).toISOString(),
            reasoning: `asked at ${time}`,
          })),
        };
      case "message":
        return {
          _id: id,
          date_created: created,
          conversation_id: `c${random.int(records)}`,
          answer_title: String(time),
          review: random.chance(0.5) ? null : random.int(6),
          link_was_clicked: random.chance(0.5),
        };
      case "end_user":
        return {
          end_user_id: id,
          created_at: created,
          updated_at: updated,
          profile: { first_name: String(time) },
        };
    }
  };

  return () => {
    const kind = random.pick(KINDS);
    const id = `${kind[0]}${random.int(records)}`;
    const time = now() - random.int(random.chance(0.3) ? DELAY : 50);
    const moved = random.chance(0.03) ? random.int(3) * DAY : 0;
    const created = new Date(since + (Number(id.slice(1)) % 7) * DAY + moved).toISOString();
    const data = dataOf(kind, id, time, created);
    const event = handMade({ kind, client, id, time: new Date(time).toISOString(), data });
    return { event, kind, id, time };
  };
};

/** In ms. */
export const exportedAt = (text: string): number => {
  const record = JSON.parse(text) as {
    inquiry_summary?: string;
    answer_title?: string;
    profile?: { first_name: string };
  };
  return Number(record.inquiry_summary ?? record.answer_title ?? record.profile?.first_name);
};

export const personOf = (client: string, name: string, time: string): BusEvent[] => {
  const created = new Date(CREATED).toISOString();
  const event = (kind: RecordKind, id: string, data: Record<string, unknown>): BusEvent => {
    const own =
      kind === "end_user" ? { end_user_id: id, created_at: created } : { _id: id, date_created: created };
    return handMade({ kind, client, id, time, data: { ...own, ...data } });
  };
  return [
    event("end_user", `${name}-user`, { profile: { email: `${name}@example.com`, first_name: name } }),
    event("conversation", `${name}-1`, { chatter_id: `${name}-chatter`, end_user_id: `${name}-user` }),
    event("conversation", `${name}-2`, { end_user_id: `${name}-user`, inquiry_summary: `${time} again` }),
    event("message", `${name}-1-1`, { conversation_id: `${name}-1`, chatter_id: `${name}-chatter` }),
    event("message", `${name}-1-2`, { conversation_id: `${name}-1`, review: 3 }),
  ];
};
