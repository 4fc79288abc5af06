import { type Micros, MICROS_IN_SECOND } from "@conversation-export/domain";
import { readNoted } from "../changes/moved-dates.ts";
import type { Session } from "../session/session.ts";

const ASK_EVERY_MS = 5_000;
/** Behind a longer time, all records of a page are looked up rather than all entries since. */
const LATELY: Micros = 180 * MICROS_IN_SECOND;

/**
 * The instant before which the dates of records with several are noted in `moved_dates`, µs; 0: not lately. It may
 * be older than the table is, never younger.
 *
 * @throws WarehouseError
 */
export const createNotedDates = (session: Session): (() => Promise<Micros>) => {
  let known: Promise<Micros> | undefined;
  let askedAt = 0;
  const ask = async (): Promise<Micros> => {
    try {
      return await readNoted(session, "pages.noted");
    } catch (error) {
      known = undefined;
      throw error;
    }
  };
  return async () => {
    const now = Date.now();
    if (known === undefined || Math.abs(now - askedAt) > ASK_EVERY_MS) {
      askedAt = now;
      known = ask();
    }
    const noted = await known;
    return noted > now * 1_000 - LATELY ? noted : 0;
  };
};
