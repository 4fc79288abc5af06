import { handMade } from "./hand-made.ts";
import type { BusEvent } from "./index.ts";
import { DAY, type Micros, SECOND, writeInstant } from "./values/instants.ts";
import type { Random } from "./values/random.ts";

/** In µs, with a fraction that some exports leave out. */
export const FIRST_DAY: Micros = Date.UTC(2026, 9, 1, 9, 2, 11) * 1_000 + 4_500;
export const DAYS = 4;
export const THREADS = ["c1", "c2"] as const;

const EXPORTED: Micros = FIRST_DAY + 10 * DAY;
/** Few, so that some exports of a record have the same time. */
const EXPORT_SECONDS = 5_000;
/** Fewer than records, so that dates tie. */
const CREATION_SECONDS = 40;

/** These fields carry the export's instant, also in legacy versions. */
export const STAMP = { conversations: "platform", messages: "answer_title" } as const;

const createdBy = (random: Random, number: number): Micros => {
  const day = random.chance(0.5) ? number % DAYS : random.int(DAYS);
  const exact = FIRST_DAY + day * DAY + (number % CREATION_SECONDS) * SECOND;
  return random.chance(0.5) ? exact : exact - (exact % SECOND);
};

const handoffOf = (random: Random, number: number, stamp: string): Record<string, unknown> => ({
  name: "Desk",
  handoff_id: random.pick(["h1", "h2", "h3", null]),
  id: `a${number}-${random.int(3)}`,
  date_created: writeInstant(random, FIRST_DAY + random.int(5) * SECOND),
  reason_code: null,
  reasoning: stamp,
});

export const movingExport = (
  random: Random,
  kind: "conversation" | "message",
  client: string,
  number: number,
): BusEvent => {
  const id = `${kind === "conversation" ? "c" : "m"}${number}`;
  const created = createdBy(random, number);
  const time = new Date((EXPORTED + random.int(EXPORT_SECONDS) * SECOND) / 1_000).toISOString();
  const date_created = writeInstant(random, created);
  const data =
    kind === "conversation"
      ? {
          _id: id,
          date_created,
          date_updated: random.chance(0.1) ? null : writeInstant(random, created + random.int(10) * DAY),
          handoffs: Array.from({ length: random.int(3) }, () => handoffOf(random, number, time)),
          [STAMP.conversations]: time,
        }
      : { _id: id, date_created, conversation_id: random.pick(THREADS), [STAMP.messages]: time };
  // Not by id, so that two processes write rows of one record.
  return { ...handMade({ kind, client, id, time, data }), key: random.hex(8) };
};
