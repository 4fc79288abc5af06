import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { readNoted } from "../changes/moved-dates.ts";
import type { Session } from "../session/session.ts";

const ASK_EVERY_MS = 5_000;
const TIMEOUT_MS = 5_000;
/** Behind a longer time, all records of a page are looked up rather than all entries since. */
const LATELY: Micros = 180 * MICROS_IN_SECOND;

/**
 * The instant up to which `moved_dates` knows moved records, µs; 0: unknown. May be older than the table,
 * never newer.
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
