import { handMade } from "./hand-made.ts";
import type { BusEvent } from "./index.ts";
import { DAY, type Micros, SECOND, writeInstant } from "./values/instants.ts";
import type { Random } from "./values/random.ts";

/** 2026-10-01T09:02:11.004500Z in µs: with a fraction that some exports leave out. */
export const FIRST_DAY: Micros = Date.UTC(2026, 9, 1, 9, 2, 11) * 1_000 + 4_500;
/** Days on which records are created. */
export const DAYS = 4;
/** Conversations to which messages belong. */
export const THREADS = ["c1", "c2"] as const;

const EXPORTED: Micros = FIRST_DAY + 10 * DAY;
/** Few, so that some exports of a record have the same time. */
const EXPORT_SECONDS = 5_000;
/** Seconds of a day at which records are created: fewer than records, so that dates tie. */
const CREATION_SECONDS = 40;

/** Where a test reads the instant of the export out of a record, also out of the legacy versions. */
export const STAMP = { conversations: "platform", messages: "answer_title" } as const;

/**
 * The date of creation as one export has it: mostly that of the record, in another form, without its
 * fraction, or on another day.
 */
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

/**
 * One export of conversation `c<number>` or message `m<number>`, under a date of creation that differs from
 * one export to the next, at a random time and on a random partition.
 */
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
  // Not by the id: two processes write rows of one record at the same time.
  return { ...handMade({ kind, client, id, time, data }), key: random.hex(8) };
};
