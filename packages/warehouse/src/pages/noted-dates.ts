import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { readNoted } from "../changes/moved-dates.ts";
import type { Session } from "../session/session.ts";

const ASK_EVERY_MS = 5_000;
const TIMEOUT_MS = 5_000;
/** Behind a longer time, all records of a page are looked up rather than all entries since. */
const LATELY: Micros = 180 * MICROS_IN_SECOND;

/**
 * The instant before which the dates of records with several are noted in `moved_dates`, µs; 0: not lately,
 * or it cannot be read. It may be older than the table is, never younger.
 */
export const createNotedDates = (from: Session): (() => Promise<Micros>) => {
  const session = from.with({ timeoutMs: TIMEOUT_MS });
  let known: Promise<Micros> = Promise.resolve(0);
  let askedAt = -Infinity;
  return async () => {
    const now = Date.now();
    if (Math.abs(now - askedAt) > ASK_EVERY_MS) {
      askedAt = now;
      // Pages are right without it.
      known = readNoted(session, "pages.noted").catch(() => 0);
    }
    const noted = await known;
    return noted > now * 1_000 - LATELY ? noted : 0;
  };
};
